// A function of numbers in AssemblyScript.
export function fibonacci(index: u32): u64 {
  let a: u64 = 0, b: u64 = 1;
  for (let i: u32 = 0; i < index; i++) {
    const next = a + b;
    a = b;
    b = next;
  }
  return a;
}
