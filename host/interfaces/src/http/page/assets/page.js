// Makes the page live: looks at it again when the host says that something changed, and takes dropped files.
"use strict";

// What a person has chosen or written so far stays, in the form about the same question.
function carry(part, next) {
  const about = (field) => field.form?.elements.approval?.value ?? field.form?.elements.question?.value;
  const isChoice = (field) => field.type === "checkbox" || field.type === "radio";
  for (const field of part.querySelectorAll("input, textarea")) {
    if (field.checked === field.defaultChecked && field.value === field.defaultValue) continue;
    const same = [...next.querySelectorAll("input, textarea")].find((other) => other.name === field.name
      && about(other) === about(field) && (!isChoice(field) || other.value === field.value));
    if (!same || same.type === "file") continue;
    if (isChoice(field)) same.checked = field.checked; else same.value = field.value;
  }
}

// Parts that changed are replaced; one in which a person is writing is left alone until it is about something else.
function update(fresh) {
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = fresh.getElementById(part.id);
    if (!next) { part.replaceChildren(); continue; }
    const writing = part.contains(document.activeElement)
      && document.activeElement.matches("input, textarea, select, button");
    const keys = (root) => [root, ...root.querySelectorAll("[data-key]")].map((e) => e.dataset.key ?? "").join();
    if (writing && keys(part) === keys(next)) continue;
    for (const open of part.querySelectorAll("details[open][id]")) {
      const same = next.querySelector("#" + CSS.escape(open.id));
      if (same) same.open = true;
    }
    if (part.innerHTML === next.innerHTML && (part.dataset.key ?? "") === (next.dataset.key ?? "")) continue;
    const focused = part.contains(document.activeElement) ? document.activeElement : null;
    const row = focused?.closest("details[id]")?.id;
    carry(part, next);
    part.replaceWith(document.importNode(next, true));
    if (row) document.getElementById(row)?.querySelector("summary")?.focus();
  }
  if (!fresh.body.dataset.live) source?.close();
}

let timer = 0;
async function refresh() {
  timer = 0;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
  if (!answer) return;
  if (answer.redirected) { location.reload(); return; }
  if (answer.ok) update(new DOMParser().parseFromString(await answer.text(), "text/html"));
}

let source = null;
if (document.body.dataset.live) {
  source = new EventSource(document.body.dataset.live);
  const soon = () => { timer ||= setTimeout(refresh, 150); };
  // What changed before the first event, or while the connection was lost, is missed otherwise.
  source.onopen = soon;
  source.onmessage = soon;
  source.addEventListener("end", () => { source.close(); soon(); });
}

for (const form of document.querySelectorAll("[data-drop]")) {
  const file = form.querySelector("input[type=file]");
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (event.dataTransfer.files.length !== 1) return;
    file.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}
