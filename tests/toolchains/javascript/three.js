// A command of WASI 0.3, which the host does not offer.
export const run = {
  async run() {
    console.log("three");
  },
};
