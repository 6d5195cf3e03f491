/* Steps a frozen world of Featherlane (a .flz file with the target wasm32) in a browser or in Node.js 20 or later.

       import { open } from "./featherlane.js";
       const world = await open("robot.flz", { trust: "871f...9609" });
       world.field("ctrl")[0] = 0.3;
       world.step(100);
       console.log(world.field("qpos"), world.selfTest());

   An ES module without dependencies.  Units: SI.  Names, shapes and meanings of fields: docs/fields.md.
   WebAssembly runs in a sandbox: a file reads and writes no memory but its own. */

const FORMAT = 1, LINE = 64, FAULT_WORDS = 4, PAGE = 65536, ZIP_END = 22;
const STACK = 2 << 20; // its upper end; constants of the kernels have the first MiB
const COMMENT = "featherlane frozen world, SHA-256 of manifest.json: ";
const ARRAYS = { f8: Float64Array, i4: Int32Array, i8: BigInt64Array };
const COLUMNS = { dist: 1, pos: 3, frame: 9, includemargin: 1, friction: 5, force: 6, dim: 1, geom: 2 };
/* A module with one function, f64x2.relaxed_madd of three numbers. */
const PROBE = "0061736d0100000001080160037c7c7c017c0302010007050101660000"
  + "0a160114002000fd142001fd142002fd14fd8702fd21000b";
const modules = new Map(); // SHA-256 -> promise of a compiled module, which worlds share

/* An error of a file: it does not fit, or cannot run here. */
export class FrozenError extends Error {}

function require(condition, what) {
  if (!condition) throw new FrozenError(`not a frozen world of format ${FORMAT}: ${what}`);
}

/* ---- SHA-256 (FIPS 180-4): crypto.subtle exists on secure pages only --------------------------------------------- */
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
/* The first 32 bits of the fraction of a root; 64-bit numbers have enough of them. */
const fraction = (x) => Math.floor((x - Math.floor(x)) * 2 ** 32);
const ROUNDS = Uint32Array.from(primes, (p) => fraction(Math.cbrt(p)));
const START = Uint32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));

/* Returns the SHA-256 of bytes as 64 hexadecimal digits. */
export function sha256(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64), view = new DataView(padded.buffer);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const h = START.slice(), w = new Uint32Array(64), turned = (x, n) => (x >>> n) | (x << (32 - n));
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turned(a, 7) ^ turned(a, 18) ^ (a >>> 3)) + w[i - 7]
        + (turned(b, 17) ^ turned(b, 19) ^ (b >>> 10));
    }
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const x = (k + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const y = ((turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [k, g, f, e, d, c, b, a] = [g, f, e, (d + x) | 0, c, b, a, (x + y) | 0];
    }
    [a, b, c, d, e, f, g, k].forEach((value, i) => { h[i] += value; });
  }
  return Array.from(h, (x) => x.toString(16).padStart(8, "0")).join("");
}

/* ---- the zip ----------------------------------------------------------------------------------------------------- */
async function inflated(bytes, format) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* Returns the bytes of a URL, of a path in Node.js, of a Response, or of a buffer. */
async function bytesOf(source) {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  const isRemote = source instanceof Response || /^(https?|data|blob):/.test(source);
  if (globalThis.process?.versions?.node && !isRemote) {
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(String(source).startsWith("file:") ? new URL(source) : source));
  }
  const answer = source instanceof Response ? source : await fetch(source);
  if (!answer.ok) throw new FrozenError(`${answer.url}: cannot be read: status ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

/* Returns name -> {method, content} of the members, and the hash in the comment. */
function unzipped(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), found = new Map();
  const end = bytes.length - ZIP_END - COMMENT.length - 64, text = new TextDecoder();
  require(end >= 0 && view.getUint32(end, true) === 0x06054b50, "its zip has another end");
  const comment = text.decode(bytes.subarray(end + ZIP_END));
  require(comment.startsWith(COMMENT), "its zip has another comment");
  for (let k = view.getUint16(end + 10, true), at = view.getUint32(end + 16, true); k > 0; k--) {
    require(at + 46 <= end && view.getUint32(at, true) === 0x02014b50, "its list of members is damaged");
    const length = view.getUint16(at + 28, true), size = view.getUint32(at + 20, true);
    const name = text.decode(bytes.subarray(at + 46, at + 46 + length)), local = view.getUint32(at + 42, true);
    require(local + 30 <= end && view.getUint32(local, true) === 0x04034b50, "a member is damaged");
    const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    require(start + size <= end && !found.has(name), "a member is cut off, or there are two of it");
    found.set(name, { method: view.getUint16(at + 10, true), content: bytes.subarray(start, start + size) });
    at += 46 + length + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
  }
  return { members: found, hash: comment.slice(COMMENT.length) };
}

async function member(members, name) {
  const found = members.get(name);
  require(found && (found.method === 0 || found.method === 8), `the member ${name} is missing, or its method unknown`);
  return found.method ? inflated(found.content, "deflate-raw") : found.content;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */
/* A record in the memory of the kernels: its fields, its image, and the address of its table. */
class Block {
  constructor(given, image, base, memory) {
    const view = new DataView(image.buffer, image.byteOffset, image.length);
    Object.assign(this, { base, memory, fields: new Map(), sizes: new Map() });
    const lines = Number(view.getBigInt64(0, true)), table = new BigInt64Array(FAULT_WORDS + 2 * given.fields.length);
    require(image.length === 8 + lines * (8 + LINE), "an image has another length than its number of lines");
    let word = FAULT_WORDS, last = 0;
    for (const f of given.fields) {
      if (f.kind === "size") {
        this.sizes.set(f.name, f.value);
        table[word] = BigInt(f.value);
      } else {
        const type = ARRAYS[f.type], count = f.shape.reduce((a, b) => a * b, 1);
        const end = f.offset + f.rows * type?.BYTES_PER_ELEMENT;
        const fits = count <= f.rows && f.offset >= last && f.offset % LINE === 0 && end + LINE <= given.bytes;
        require(fits, `the field ${f.name} does not fit`);
        this.fields.set(f.name, { ...f, type, count, end });
        table[word] = BigInt(base + f.offset);
        table[word + 1] = BigInt(f.rows);
        last = end;
      }
      word += 2;
    }
    this.lines = Array.from({ length: lines }, (_, k) => {
      const at = Number(view.getBigInt64(8 + 8 * k, true)) * LINE, start = 8 + 8 * lines + LINE * k;
      require(at >= 0 && at + LINE <= given.bytes, "an image has a wrong line");
      return { at, content: image.subarray(start, start + LINE) };
    });
    const bytes = new Uint8Array(memory.buffer);
    for (const { at, content } of this.lines) bytes.set(content, base + at);
    this.table = base + given.bytes;
    new BigInt64Array(memory.buffer, this.table, table.length).set(table);
  }

  static length(given) {
    require(Number.isSafeInteger(given.bytes) && given.bytes > 0 && given.bytes % LINE === 0, "a record has no size");
    return given.bytes + Math.ceil((8 * (FAULT_WORDS + 2 * given.fields.length)) / LINE) * LINE;
  }

  /* Returns a live view of a field's numbers: all rows, or those of its shape. */
  view(name, every = false) {
    const f = this.fields.get(name);
    if (!f) throw new FrozenError(`${name}: no field has this name`);
    return new f.type(this.memory.buffer, this.base + f.offset, every ? f.rows : f.count);
  }

  reset() {
    const bytes = new Uint8Array(this.memory.buffer), cleared = [...this.fields.values()].filter((f) => f.reset);
    for (const f of cleared) bytes.fill(0, this.base + f.offset, this.base + f.end);
    for (const { at, content } of this.lines)
      if (cleared.some((f) => f.offset <= at && at < f.end)) bytes.set(content, this.base + at);
  }
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */
const isFused = (fma) => fma(1 + 2 ** -27, 1 + 2 ** -27, -(1 + 2 ** -26)) === 2 ** -54;

/* Returns whether the multiply-add of relaxed SIMD has one rounding here. */
function hasFused() {
  try {
    const code = Uint8Array.from(PROBE.match(/../g), (pair) => parseInt(pair, 16));
    return isFused(new WebAssembly.Instance(new WebAssembly.Module(code)).exports.f);
  } catch {
    return false;
  }
}

async function compiled(members, manifest, kernels, relaxed) {
  const targets = manifest.targets.filter((t) => t.architecture === "wasm32");
  if (!targets.length) throw new FrozenError("has no kernels for wasm32: freeze it with targets=['wasm32']");
  const wanted = `wasm32-${relaxed ? "relaxed" : "exact"}`, target = targets.find((t) => t.name === wanted);
  require(target, `no target ${wanted}`);
  const hash = manifest.files[target.file];
  if (!modules.has(hash)) {
    const load = async () => {
      const given = members.has(target.file) || !kernels ? member(members, target.file) : bytesOf(kernels(target.file));
      const code = await given;
      require(sha256(code) === hash, `${target.file} has another hash`);
      return WebAssembly.compile(await inflated(code, "gzip"));
    };
    modules.set(hash, load());
    modules.get(hash).catch(() => modules.delete(hash)); // a later call tries again
  }
  const module = await modules.get(hash), [section] = WebAssembly.Module.customSections(module, "featherlane");
  const properties = section ? JSON.parse(new TextDecoder().decode(section)) : {};
  require(properties.layout === manifest.layout, "its kernels have other record layouts");
  return { module, target: target.name };
}

/* ---- a world ----------------------------------------------------------------------------------------------------- */
/* Opens a file.
   source: a URL, a Response, an ArrayBuffer, a Uint8Array, or in Node.js a path.
   trust: the hash that the file must have.
   kernels: a function of the name of a member, which returns a source of kernels that the file lacks.
   relaxed: use relaxed SIMD; by default if its multiply-add is exact on this processor.
   Throws FrozenError if the file cannot be read, does not fit, or has no kernels for wasm32. */
export async function open(source, { trust = null, kernels = null, relaxed = hasFused() } = {}) {
  const { members, hash } = unzipped(await bytesOf(source)), text = await member(members, "manifest.json");
  require(sha256(text) === hash, "its comment is not the hash of manifest.json");
  if (trust !== null && trust !== hash) throw new FrozenError(`its hash is ${hash}, trusted is ${trust}`);
  const manifest = JSON.parse(new TextDecoder().decode(text)), images = {};
  require(manifest.format === FORMAT, `it has format ${manifest.format}`);
  for (const name of ["model.bin", "data.bin", "controls.bin"]) {
    images[name] = await member(members, name);
    require(sha256(images[name]) === manifest.files[name], `${name} has another hash`);
  }
  return new World(manifest, hash, images, await compiled(members, manifest, kernels, relaxed));
}

/* One world in float64; `open` creates it.  hash: of the file.  target: the kernels in use.  version: of Featherlane
   that wrote the file.  names: of bodies, joints, geoms, ... by kind, in the order of ids. */
export class World {
  #model; #data; #call; #symbols; #parts; #controls; #test;

  constructor(manifest, hash, images, { module, target }) {
    const { model, data } = manifest.records, second = STACK + LINE + Block.length(model);
    const memory = new WebAssembly.Memory({ initial: Math.ceil((second + Block.length(data) + LINE) / PAGE) });
    const pointer = new WebAssembly.Global({ value: "i32", mutable: true }, STACK);
    const table = new WebAssembly.Table({ initial: 1, element: "anyfunc" }); // empty: there are no user callbacks
    const env = { __linear_memory: memory, __stack_pointer: pointer, __indirect_function_table: table };
    this.#call = new WebAssembly.Instance(module, { env }).exports;
    require(isFused(this.#call.fl_fma), "this processor rounds the multiply-add of relaxed SIMD twice");
    this.#model = new Block(model, images["model.bin"], STACK + LINE, memory);
    this.#data = new Block(data, images["data.bin"], second, memory);
    for (const [place, to] of manifest.pointers)
      new BigInt64Array(memory.buffer, second + place, 1)[0] = BigInt(second + to);
    this.#controls = new Float64Array(images["controls.bin"].slice().buffer);
    Object.assign(this, { hash, target, version: manifest.featherlane, names: manifest.names });
    this.#symbols = manifest.symbols;
    this.#parts = manifest.state;
    this.#test = manifest.self_test;
  }

  /* Takes n steps of opt_timestep [s].  Returns bits of what has happened since the last reset: 1, a value was NaN or
     beyond 1e10, and the world was reset; 2, contacts or rows did not fit. */
  step(n = 1) {
    if (!Number.isSafeInteger(n) || n < 1) throw new RangeError(`n: got ${n}, allowed are whole numbers from 1`);
    this.#call[this.#symbols.step](this.#model.table, this.#data.table, BigInt(n));
    return this.#data.view("found_bad")[0];
  }

  /* Computes all fields of the present state without a step; returns the bits of step. */
  forward() {
    this.#call[this.#symbols.forward](this.#model.table, this.#data.table);
    return this.#data.view("found_bad")[0];
  }

  /* Resets to the state that the file has; all derived fields become zero. */
  reset() { this.#data.reset(); }

  /* Returns the numbers of a field as a live typed array: state, controls and other inputs may be written. */
  field(name) { return this.#data.view(name); }

  /* Returns a copy of the numbers of a field of the model, such as body_mass. */
  constant(name) { return this.#model.view(name).slice(); }

  /* Returns {shape, unit, writable} of a field of the world or of the model; null for an unknown name. */
  describe(name) {
    const f = this.#data.fields.get(name) ?? this.#model.fields.get(name);
    return f ? { shape: [...f.shape], unit: f.unit, writable: this.#data.fields.has(name) && !!f.writable } : null;
  }

  /* Returns a size, such as nq, nv, nu or nbody; -1 for an unknown name. */
  size(name) { return this.#model.sizes.get(name) ?? this.#data.sizes.get(name) ?? -1; }

  /* Returns the id of an object ("body", "joint", "geom", ...) by its name; -1 if there is none. */
  id(kind, name) { return name ? (this.names[kind] ?? []).indexOf(name) : -1; }

  /* The state: all that a step reads, with the layout of MuJoCo's mj_getState for mjSTATE_INTEGRATION. */
  getState() {
    const out = new Float64Array(this.#parts.size);
    for (const [name, start, count] of this.#parts.parts)
      out.set(this.#data.view(name, true).subarray(0, count), start);
    return out;
  }

  setState(state) {
    const { size, parts } = this.#parts, given = Float64Array.from(state);
    if (given.length !== size) throw new RangeError(`state: got ${given.length} numbers, allowed are ${size}`);
    for (const [name, start, count] of parts) this.#data.view(name, true).set(given.subarray(start, start + count));
  }

  /* Returns the contacts of the last step or forward pass: dist [m], pos [m], frame (rows: normal from geom 0 to
     geom 1, two tangents), includemargin [m], friction, force along and moment about the rows [N, N m], dim, geom. */
  contacts() {
    const present = this.#data.view("con_present"), found = [];
    const columns = Object.entries(COLUMNS).map(([name, width]) => [name, width, this.#data.view(`con_${name}`, true)]);
    for (let k = 0; k < Math.min(this.#data.view("ncon_slot")[0], present.length); k++)
      if (present[k] !== 0)
        found.push(Object.fromEntries(columns.map(([name, width, values]) =>
          [name, width === 1 ? values[k] : Array.from(values.subarray(width * k, width * (k + 1)))])));
    return found;
  }

  /* Returns the SHA-256 of the state. */
  stateHash() { return sha256(new Uint8Array(this.getState().buffer)); }

  /* Runs the 1,000 steps of the file's self-test; returns {hash, expected} of their states.  The world is reset. */
  testHashes() {
    const { steps, blocks, hash } = this.#test, states = new Float64Array(blocks * this.#parts.size);
    const ctrl = this.field("ctrl");
    this.reset();
    for (let k = 0; k < blocks; k++) {
      ctrl.set(this.#controls.subarray(k * ctrl.length, (k + 1) * ctrl.length));
      this.step(steps);
      states.set(this.getState(), k * this.#parts.size);
    }
    this.reset();
    return { hash: sha256(new Uint8Array(states.buffer)), expected: hash };
  }

  /* Returns whether this machine computes the states of the file's self-test, bit for bit; the world is reset. */
  selfTest() { return Object.values(this.testHashes()).every((hash) => hash === this.#test.hash); }
}
