/* Live worlds on a page: frozen worlds that WebAssembly steps (featherlane.js), drawn with three.js.

   An element <div class="live" data-world="humanoid" data-models="convex lcp" data-control=""> becomes a world with its
   controls.  Files next to this script: featherlane.js, three.min.js, WORLD-MODEL.flz, the kernels of all worlds. */
import { open } from "./featherlane.js";

const HERE = new URL(".", import.meta.url);
/* distance [m], turn and tilt [deg], and height of the point in the middle [m] of the camera */
const VIEWS = { humanoid: [3.4, 35, 12, 0.9], arm: [2.4, 35, 18, 0.55], box_stack: [2.6, 35, 16, 0.5] };
const PLANE = 0, SPHERE = 2, CAPSULE = 3, ELLIPSOID = 4, CYLINDER = 5, BOX = 6; // geom_type
const SHAPES = new Set([PLANE, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX]);
const SHARE = 0.012; // s of a frame that steps may take
const SPRING = 60, DAMPER = 8; // of the mouse, per kg of the body: [1/s^2], [1/s]
const GROUND = 40; // m
const PLOT = 10; // s of the plot of energy
const COLORS = ["#4c9bd6", "#e08a3c", "#5fb37a", "#c96a8b", "#9a86d1", "#c9b04a"];
const LINES = [["potential", 0, "#e08a3c"], ["kinetic", 1, "#5fb37a"], ["total", 2, "#4c9bd6"]];

/* Loads three.js, once for a page. */
let three;
const library = () => (three ??= new Promise((done, failed) => {
  const script = document.createElement("script");
  script.src = new URL("three.min.js", HERE);
  script.onload = () => done(window.THREE);
  script.onerror = () => failed(new Error("three.min.js cannot be loaded"));
  document.head.append(script);
}));

function element(kind, parent, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(kind), properties));
}

const color = (at, name) => getComputedStyle(at).getPropertyValue(name).trim();

/* ---- drawing ----------------------------------------------------------------------------------------------------- */
function geometry(THREE, type, [a, b, c]) {
  const upright = (g) => g.rotateX(Math.PI / 2); // three.js has the axis along y
  if (type === SPHERE) return new THREE.SphereGeometry(a, 28, 18);
  if (type === ELLIPSOID) return new THREE.SphereGeometry(1, 28, 18).scale(a, b, c);
  if (type === CYLINDER) return upright(new THREE.CylinderGeometry(a, a, 2 * b, 28));
  if (type === BOX) return new THREE.BoxGeometry(2 * a, 2 * b, 2 * c);
  const outline = []; // of a capsule, from its lower to its upper end
  for (let k = -9; k <= 9; k++) {
    const angle = (k * Math.PI) / 18, end = Math.sign(k) * b;
    outline.push(new THREE.Vector2(Math.max(a * Math.cos(angle), 0), a * Math.sin(angle) + (k ? end : -b)));
    if (k === 0) outline.push(new THREE.Vector2(a, b));
  }
  return upright(new THREE.LatheGeometry(outline, 24));
}

class Scene {
  constructor(THREE, canvas, name) {
    this.THREE = THREE;
    this.canvas = canvas;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true });
    this.renderer.shadowMap.enabled = true;
    this.scene = new THREE.Scene();
    this.camera = new THREE.PerspectiveCamera(40, 1, 0.05, 60);
    this.camera.up.set(0, 0, 1);
    [this.distance, this.turn, this.tilt, this.height] = VIEWS[name] ?? [4, 35, 15, 0.6];
    this.scene.add(new THREE.HemisphereLight(0xffffff, 0x778899, 0.6));
    const sun = new THREE.DirectionalLight(0xffffff, 0.45);
    sun.position.set(2, -3, 6);
    sun.castShadow = true;
    sun.shadow.mapSize.set(1024, 1024);
    Object.assign(sun.shadow.camera, { left: -3, right: 3, top: 3, bottom: -3 });
    this.scene.add(sun);
    this.pull = new THREE.Line(new THREE.BufferGeometry(), new THREE.LineBasicMaterial({ color: 0xd64545 }));
    this.pull.frustumCulled = false;
    this.scene.add(this.pull);
    this.geoms = [];
  }

  build(world) {
    const { THREE } = this, types = world.constant("geom_type"), sizes = world.constant("geom_size");
    const bodies = world.constant("geom_bodyid");
    for (const { mesh } of this.geoms) this.scene.remove(mesh);
    this.geoms = [];
    types.forEach((type, k) => {
      if (!SHAPES.has(type)) return;
      const material = new THREE.MeshStandardMaterial({ color: COLORS[bodies[k] % COLORS.length], roughness: 0.7 });
      let mesh;
      if (type === PLANE) {
        mesh = this.ground = new THREE.Mesh(new THREE.PlaneGeometry(GROUND, GROUND), material);
      } else {
        mesh = new THREE.Mesh(geometry(THREE, type, sizes.slice(3 * k, 3 * k + 3)), material);
        mesh.castShadow = true;
        if (bodies[k] === 0) material.color.set("#8a949c");
      }
      mesh.matrixAutoUpdate = false;
      mesh.receiveShadow = true;
      this.scene.add(mesh);
      this.geoms.push({ mesh, k, body: bodies[k] });
    });
    this.paint();
  }

  /* Takes the colors of the page, which may have changed to dark. */
  paint() {
    const { THREE } = this, back = color(this.canvas, "--live-back");
    this.scene.background = new THREE.Color(back);
    this.scene.fog = new THREE.Fog(back, 6, 18);
    if (!this.ground) return;
    const tile = Object.assign(document.createElement("canvas"), { width: 256, height: 256 }), pen = tile.getContext("2d");
    for (const k of [0, 1, 2, 3]) {
      pen.fillStyle = color(this.canvas, k % 3 ? "--live-ground" : "--live-tile");
      pen.fillRect(128 * (k % 2), 128 * (k >> 1), 128, 128);
    }
    const map = Object.assign(new THREE.CanvasTexture(tile), { anisotropy: 8 });
    map.wrapS = map.wrapT = THREE.RepeatWrapping;
    map.repeat.set(GROUND, GROUND); // squares of half a meter
    this.ground.material.setValues({ map, color: "#ffffff" });
    this.ground.material.needsUpdate = true;
  }

  draw(world, drag) {
    const at = world.field("geom_xpos"), turned = world.field("geom_xmat"), { camera, renderer, canvas } = this;
    for (const { mesh, k } of this.geoms) {
      const R = turned.subarray(9 * k, 9 * k + 9), p = at.subarray(3 * k, 3 * k + 3);
      mesh.matrix.set(R[0], R[1], R[2], p[0], R[3], R[4], R[5], p[1], R[6], R[7], R[8], p[2], 0, 0, 0, 1);
    }
    const { clientWidth: width, clientHeight: height } = canvas;
    const ratio = Math.min(window.devicePixelRatio, 2);
    if (canvas.width !== Math.floor(width * ratio) || canvas.height !== Math.floor(height * ratio)) {
      renderer.setPixelRatio(ratio);
      renderer.setSize(width, height, false);
      camera.aspect = width / height;
      camera.updateProjectionMatrix();
    }
    const turn = (this.turn * Math.PI) / 180, tilt = (this.tilt * Math.PI) / 180;
    const r = this.distance * Math.max(1, 1.25 / camera.aspect);
    const level = r * Math.cos(tilt), up = this.height + r * Math.sin(tilt);
    camera.position.set(level * Math.cos(turn), -level * Math.sin(turn), up);
    camera.lookAt(0, 0, this.height);
    this.pull.visible = !!drag;
    if (drag) this.pull.geometry.setFromPoints([drag.point, drag.goal]);
    renderer.render(this.scene, camera);
  }

  /* Returns the first body at a place of the screen, and the point there: {body, point}; null for the ground. */
  pick(x, y) {
    const { THREE } = this, box = this.canvas.getBoundingClientRect(), ray = new THREE.Raycaster();
    const place = new THREE.Vector2((2 * (x - box.left)) / box.width - 1, 1 - (2 * (y - box.top)) / box.height);
    ray.setFromCamera(place, this.camera);
    this.ray = ray.ray;
    const moving = this.geoms.filter((geom) => geom.body > 0), byMesh = new Map(moving.map((g) => [g.mesh, g.body]));
    this.scene.updateMatrixWorld();
    const [hit] = ray.intersectObjects([...byMesh.keys()]);
    return hit ? { body: byMesh.get(hit.object), point: hit.point } : null;
  }
}

/* ---- a world on a page ------------------------------------------------------------------------------------------- */
class Live {
  constructor(root) {
    this.root = root;
    this.name = root.dataset.world;
    root.replaceChildren();
    this.canvas = element("canvas", root, { className: "live-scene" });
    this.canvas.setAttribute("aria-label", `${this.name}: a live simulation`);
    const bar = element("div", root, { className: "live-bar" });
    this.button = element("button", bar, { textContent: "Run", onclick: () => this.run(!this.running) });
    element("button", bar, { textContent: "Reset", onclick: () => this.reset() });
    const label = element("label", bar, { textContent: "Contact model " });
    this.choice = element("select", label, { onchange: () => this.switchTo(this.choice.value) });
    this.models = root.dataset.models.split(" ");
    for (const model of this.models) element("option", this.choice, { textContent: model, value: model });
    this.speed = element("span", bar, { className: "live-speed" });
    this.plot = element("canvas", root, { className: "live-plot" });
    this.plot.setAttribute("aria-label", "energy over time");
    this.note = element("p", root, { className: "live-note", textContent: "Loading ..." });
    this.worlds = new Map();
    this.history = [];
    this.running = false;
    this.due = this.last = 0;
  }

  async start() {
    try {
      const [THREE, world] = await Promise.all([library(), this.load(this.models[0])]);
      this.scene = new Scene(THREE, this.canvas, this.name);
      this.world = world;
      this.scene.build(world);
      this.listen();
      this.reset();
      this.run(!window.matchMedia("(prefers-reduced-motion: reduce)").matches);
      requestAnimationFrame((now) => this.frame(now));
    } catch (error) {
      this.note.textContent = `The world cannot run here: ${error.message}`;
      this.root.dataset.failed = error.message;
      throw error;
    }
  }

  /* Opens the world with a contact model, and runs its self-test. */
  async load(model) {
    if (!this.worlds.has(model)) {
      const kernels = (file) => new URL(file.split("/").pop(), HERE);
      const world = await open(new URL(`${this.name}-${model}.flz`, HERE), { kernels });
      this.worlds.set(model, { world, ...world.testHashes() });
    }
    const { world, hash, expected } = this.worlds.get(model);
    Object.assign(this.root.dataset, { hash, expected, target: world.target });
    const result = hash === expected ? "equal to x86-64's" : `x86-64's is ${expected.slice(0, 16)}`;
    this.note.textContent = `SHA-256 of the states of a test of 1,000 steps: ${hash.slice(0, 16)}..., ${result}. `
      + `Kernels: ${world.target}. Drag a body to pull it, drag the background to turn the camera.`;
    return world;
  }

  async switchTo(model) {
    const before = this.world, state = before.getState(), world = await this.load(model);
    world.reset();
    try {
      world.setState(state);
    } catch {
      for (const name of ["time", "qpos", "qvel"]) world.field(name).set(before.field(name)); // other warm starts
    }
    this.world = world;
    world.forward();
  }

  reset() {
    this.world.reset();
    this.world.forward();
    this.history = [];
    this.drag = null;
  }

  run(running) {
    this.running = running;
    this.button.textContent = running ? "Pause" : "Run";
  }

  frame(now) {
    const seconds = Math.min((now - this.last) / 1e3, 0.05);
    this.last = now;
    if (this.visible) {
      if (this.running) this.advance(seconds);
      this.scene.draw(this.world, this.drag);
      this.drawEnergy();
    }
    requestAnimationFrame((next) => this.frame(next));
  }

  advance(seconds) {
    const { world } = this, h = world.constant("opt_timestep")[0], start = performance.now();
    let n = 0;
    for (this.due += seconds; this.due >= h && performance.now() - start < 1e3 * SHARE; this.due -= h, n++) {
      this.control();
      this.applyForce();
      world.step();
    }
    this.due = Math.min(this.due, h);
    if (!n) return;
    const now = (n * h) / Math.max((performance.now() - start) / 1e3, 1e-5); // performance.now is coarse
    this.factor = this.factor ? 0.97 * this.factor + 0.03 * now : now;
    this.speed.textContent = `${this.factor < 10 ? this.factor.toFixed(1) : Math.round(this.factor)} x real time`;
    const [potential, kinetic] = world.field("energy"), t = world.field("time")[0];
    const { history } = this;
    if (history.length && t < history[history.length - 1][0]) history.length = 0;
    history.push([t, potential, kinetic, potential + kinetic]);
    while (history[0][0] < t - PLOT) history.shift();
  }

  /* The controller of the arm: each actuator follows a wave in its range. */
  control() {
    if (this.root.dataset.control !== "wave") return;
    const ctrl = this.world.field("ctrl"), range = this.world.constant("actuator_ctrlrange");
    const [t] = this.world.field("time");
    for (let i = 0; i < ctrl.length; i++) {
      const low = range[2 * i], high = range[2 * i + 1];
      ctrl[i] = 0.5 * (low + high) + 0.2 * (high - low) * Math.sin((0.5 + 0.13 * i) * t * 2 + i);
    }
  }

  /* A spring and a damper between the point of the body and the mouse. */
  applyForce() {
    const applied = this.world.field("xfrc_applied");
    applied.fill(0);
    if (!this.drag) return;
    const { body, local, goal, point } = this.drag, { THREE } = this.scene;
    const at = new THREE.Vector3().fromArray(this.world.field("xipos"), 3 * body);
    const R = this.world.field("xmat").subarray(9 * body, 9 * body + 9), from = this.world.field("xpos");
    const rotated = [0, 1, 2].map((i) => R[3 * i] * local.x + R[3 * i + 1] * local.y + R[3 * i + 2] * local.z);
    const before = point.clone(), h = this.world.constant("opt_timestep")[0];
    point.set(from[3 * body] + rotated[0], from[3 * body + 1] + rotated[1], from[3 * body + 2] + rotated[2]);
    const mass = Math.max(this.world.constant("body_subtreemass")[body], 0.1);
    const velocity = point.clone().sub(before).divideScalar(h);
    const force = goal.clone().sub(point).multiplyScalar(SPRING * mass).addScaledVector(velocity, -DAMPER * mass);
    const torque = point.clone().sub(at).cross(force);
    applied.set([force.x, force.y, force.z, torque.x, torque.y, torque.z], 6 * body);
  }

  listen() {
    const { canvas, scene } = this;
    const grab = (x, y) => {
      const hit = scene.pick(x, y);
      if (!hit) return false;
      const { body, point } = hit, p = this.world.field("xpos");
      const R = this.world.field("xmat").subarray(9 * body, 9 * body + 9);
      const d = [point.x - p[3 * body], point.y - p[3 * body + 1], point.z - p[3 * body + 2]];
      const local = [0, 1, 2].map((i) => R[i] * d[0] + R[3 + i] * d[1] + R[6 + i] * d[2]);
      const facing = scene.camera.getWorldDirection(new scene.THREE.Vector3());
      const plane = new scene.THREE.Plane().setFromNormalAndCoplanarPoint(facing, point);
      this.drag = { body, local: new scene.THREE.Vector3(...local), point: point.clone(), goal: point.clone(), plane };
      return true;
    };
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = [event.clientX, event.clientY];
      canvas.setPointerCapture(event.pointerId);
      grab(...held);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!held) return;
      if (this.drag) {
        scene.pick(event.clientX, event.clientY);
        scene.ray.intersectPlane(this.drag.plane, this.drag.goal);
        return;
      }
      scene.turn += 0.4 * (event.clientX - held[0]);
      scene.tilt = Math.min(Math.max(scene.tilt + 0.3 * (event.clientY - held[1]), -2), 85);
      held = [event.clientX, event.clientY];
    });
    const release = () => { held = this.drag = null; };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, release);
    /* a touch of a body pulls it; any other vertical touch scrolls the page */
    canvas.addEventListener("touchstart", (event) => {
      const [first] = event.touches;
      if (event.touches.length === 1 && scene.pick(first.clientX, first.clientY)) event.preventDefault();
    }, { passive: false });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return; // the page scrolls
      event.preventDefault();
      scene.distance = Math.min(Math.max(scene.distance * Math.exp(0.002 * event.deltaY), 1), 12);
    }, { passive: false });
    new IntersectionObserver(([entry]) => { this.visible = entry.isIntersecting; }).observe(canvas);
    const repaint = () => scene.paint();
    new MutationObserver(repaint).observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
  }

  drawEnergy() {
    const { plot, history } = this, ratio = Math.min(window.devicePixelRatio, 2);
    const [width, height] = [plot.clientWidth, plot.clientHeight];
    if (plot.width !== Math.floor(width * ratio))
      Object.assign(plot, { width: Math.floor(width * ratio), height: Math.floor(height * ratio) });
    const pen = plot.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const text = color(plot, "--md-default-fg-color--light"), left = 52, bottom = height - 6, top = 20;
    pen.font = "11px sans-serif";
    pen.fillStyle = text;
    pen.fillText("Energy [J]", 4, 12);
    let x = 76;
    for (const [name, , line] of LINES) {
      pen.fillStyle = line;
      pen.fillRect(x, 7, 14, 3);
      pen.fillStyle = text;
      pen.fillText(name, x + 18, 12);
      x += 34 + pen.measureText(name).width;
    }
    if (history.length < 2) return;
    const values = history.flatMap((row) => row.slice(1)), end = history[history.length - 1][0];
    const low = Math.min(...values), high = Math.max(...values, low + 1e-9);
    for (const [value, y] of [[high, top + 4], [low, bottom]]) pen.fillText(value.toPrecision(3), 4, y);
    for (const [, column, line] of LINES) {
      pen.strokeStyle = line;
      pen.lineWidth = 1.5;
      pen.beginPath();
      for (const row of history) {
        const x = left + (1 + (row[0] - end) / PLOT) * (width - left - 4);
        pen.lineTo(x, bottom - ((row[column + 1] - low) / (high - low)) * (bottom - top));
      }
      pen.stroke();
    }
  }
}

/* A world loads when it comes near the screen. */
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries)
    if (isIntersecting) {
      near.unobserve(target);
      target.live = new Live(target);
      target.live.start();
    }
}, { rootMargin: "200px" });
document.querySelectorAll(".live").forEach((root) => near.observe(root));
