// Loads every file of /tasks with three.js, plays the wanted clips and posts the world positions of all vertices.
//
// An answer is one body: the length of a JSON text as a 32-bit number, the text, and float64 positions. The text lists the
// blocks of positions in order: {clip, frame, node, primitive, count}, node and primitive as the file counts them.

import * as THREE from "three";
import { GLTFLoader } from "three/addons/loaders/GLTFLoader.js";

// The loader merges a node and its only primitive into one object; several primitives are children of the node's group.
function place(associations, mesh) {
  const own = associations.get(mesh);
  return { node: own.nodes ?? associations.get(mesh.parent).nodes, primitive: own.primitives };
}

function worldPositions(mesh) {
  const count = mesh.geometry.attributes.position.count;
  const positions = new Float64Array(3 * count);
  const point = new THREE.Vector3();
  for (let i = 0; i < count; i++) {
    // Morphs, then bones; both on the processor, in double precision.
    mesh.getVertexPosition(i, point).applyMatrix4(mesh.matrixWorld).toArray(positions, 3 * i);
  }
  return positions;
}

function posed(gltf, mixer, animation, time) {
  mixer.stopAllAction();
  if (animation === null) return;
  const clip = gltf.animations.find((candidate) => candidate.name === animation);
  if (!clip) throw new Error(`three.js knows no animation '${animation}'`);
  const action = mixer.clipAction(clip);
  action.setLoop(THREE.LoopOnce);
  action.clampWhenFinished = true; // or the last frame would be the first one again
  action.reset().play();
  mixer.setTime(time);
}

async function answer(task) {
  const gltf = await new GLTFLoader().loadAsync(task.file);
  const mixer = new THREE.AnimationMixer(gltf.scene);
  const meshes = [];
  gltf.scene.traverse((object) => object.isMesh && meshes.push(object));
  const blocks = [];
  const arrays = [];
  for (const { clip, times } of task.clips) {
    times.forEach((time, frame) => {
      posed(gltf, mixer, clip, time);
      gltf.scene.updateMatrixWorld(true);
      for (const mesh of meshes) {
        const positions = worldPositions(mesh);
        blocks.push({ clip, frame, ...place(gltf.parser.associations, mesh), count: positions.length / 3 });
        arrays.push(positions);
      }
    });
  }
  const text = new TextEncoder().encode(JSON.stringify(blocks));
  await fetch(task.answer, { method: "POST", body: new Blob([new Uint32Array([text.length]), text, ...arrays]) });
}

try {
  for (const task of await (await fetch("/tasks")).json()) await answer(task);
} catch (error) {
  await fetch("/trouble", { method: "POST", body: String(error.stack ?? error) });
}
