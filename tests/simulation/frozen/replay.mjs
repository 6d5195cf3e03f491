/* Runs frozen worlds in Node.js.  Usage: node replay.mjs featherlane.js < lines of JSON: {path, relaxed, ...}
   Prints a line of JSON for each: what the test asked for, or the error. */
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { open } = await import(pathToFileURL(process.argv[2]));
const hex = (numbers) => Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength).toString("hex");

async function answer({ path, options, ctrl, steps, state, fields = [], constants = [] }) {
  const world = await open(path, options), out = { target: world.target, hash: world.hash, ...world.testHashes() };
  out.start = hex(world.getState());
  if (state) world.setState(state);
  for (const row of ctrl ?? []) {
    world.field("ctrl").set(row);
    out.found = world.step(steps);
  }
  world.forward();
  out.end = hex(world.getState());
  out.fields = Object.fromEntries(fields.map((name) => [name, { ...world.describe(name), content: hex(world.field(name)) }]));
  out.constants = Object.fromEntries(constants.map((name) => [name, Array.from(world.constant(name), Number)]));
  out.contacts = world.contacts();
  out.sizes = ["nq", "nv", "nbody", "nothing"].map((name) => world.size(name));
  out.names = world.names;
  world.reset();
  out.again = hex(world.getState());
  return out;
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify(await answer(JSON.parse(line))));
  } catch (error) {
    console.log(JSON.stringify({ error: error.message, kind: error.constructor.name }));
  }
}
