// The tool `count` in JavaScript.
export const words = {
  count(text) {
    const found = text.toLowerCase().match(/\w+/g);
    if (!found) throw "there are no words";
    const counts = new Map();
    for (const word of found) counts.set(word, (counts.get(word) ?? 0) + 1);
    return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
  },
};
