// Icons on a grid of 24, drawn with one stroke.

const PATHS = {
  orbit: "M12 5.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M3 13.5c3.5 3.4 14.5 3.4 18 0M19 10.5l2 3-3.3 1",
  pull: "M4 18c4.5 0 5-4 7.5-6.5M13 10l6-6M19 4h-4.5M19 4v4.5M4 18c4 2.5 9 1.5 11-2.5",
  poke: "M12 3.5a4.2 4.2 0 1 0 0 8.4 4.2 4.2 0 0 0 0-8.4M3 14c3.5 0 4.5 4.5 9 4.5S17.5 14 21 14M12 12v3.5",
  pose: "M12 3.5a1.8 1.8 0 1 0 0 3.6 1.8 1.8 0 0 0 0-3.6M12 7.5v6M12 9.5l-5.5 2.5M12 9.5l5.5-2.5M12 13.5l-3.5 7M12 13.5l4 3.5v3.5",
  root: "M12 3v18M3 12h18M12 3l-2.5 2.5M12 3l2.5 2.5M12 21l-2.5-2.5M12 21l2.5-2.5M3 12l2.5-2.5M3 12l2.5 2.5M21 12l-2.5-2.5M21 12l-2.5 2.5",
  paint: "M19.5 4.5c-3-1-9 5-10.5 8l2.5 2.5c3-1.5 9-7.5 8-10.5M8.5 13.5c-2 0-3 1.5-3 3.5 0 1.2-.8 2-2 2.5 4.5 1.5 7.5-.5 7.5-3.5",
  play: "M8 5.5v13l10.5-6.5z", pause: "M8.5 5.5v13M15.5 5.5v13",
  loop: "M17 3.5l3 3-3 3M4 11.5v-1a4 4 0 0 1 4-4h12M7 20.5l-3-3 3-3M20 12.5v1a4 4 0 0 1-4 4H4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 3v1.5M12 19.5V21M3 12h1.5M19.5 12H21M5.6 5.6l1.1 1.1M17.3 17.3l1.1 1.1M5.6 18.4l1.1-1.1M17.3 6.7l1.1-1.1",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z", help: "M9 9.2a3 3 0 1 1 4.3 2.7c-.9.5-1.3 1-1.3 2.1M12 17.5v.01",
  picture: "M4 8h3.5L9 5.5h6L16.5 8H20v10.5H4zM12 10a3 3 0 1 0 0 6 3 3 0 0 0 0-6", video: "M3.5 7h11v10h-11zM14.5 11l6-3v8l-6-3",
  frame: "M4 9V4.5h4.5M15.5 4.5H20V9M20 15v4.5h-4.5M8.5 19.5H4V15", panel: "M4 5h16v14H4zM14.5 5v14", close: "M6 6l12 12M18 6L6 18",
  undo: "M8 5L4 9l4 4M4 9h9.5a5 5 0 0 1 0 10H10", redo: "M16 5l4 4-4 4M20 9h-9.5a5 5 0 0 0 0 10H14", save: "M5 4.5h11l3 3v12H5zM8.5 4.5v5h6v-5M8 19.5v-6h8v6",
  down: "M6 9.5l6 6 6-6", up: "M6 14.5l6-6 6 6", left: "M14.5 6l-6 6 6 6", right: "M9.5 6l6 6-6 6", download: "M12 4v11M7.5 10.5L12 15l4.5-4.5M4.5 19.5h15",
  record: "M12 7a5 5 0 1 0 0 10 5 5 0 0 0 0-10", stop: "M7.5 7.5h9v9h-9z", plus: "M12 5.5v13M5.5 12h13", bin: "M5 7h14M9.5 7V4.5h5V7M7 7l.8 12.5h8.4L17 7",
  chart: "M4 19.5h16M5 15.5l4-5 3.5 3 5.5-8", build: "M13.5 7.5a4 4 0 0 1 5.3-3.8l-2.3 2.4.4 2 2 .4 2.3-2.4a4 4 0 0 1-5.2 5.2L9 18.5a2 2 0 0 1-3-3l7.5-6z", upload: "M12 16V5M7.5 9.5L12 5l4.5 4.5M4.5 19.5h15",
  nudge: "M3 12h2.5l2-6 3 12 3-9 2 5.5 1.5-2.5H21", calm: "M3 12c3-3 6-3 9 0s6 3 9 0", reset: "M5 5v5h5M5.5 10A7.5 7.5 0 1 1 4.5 13",
};

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
