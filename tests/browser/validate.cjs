// node validate.cjs <folder of gltf-validator> <file.glb>: the validator's report as JSON.
const [packageFolder, file] = process.argv.slice(2);
const validator = require(packageFolder);
validator
  .validateBytes(new Uint8Array(require("fs").readFileSync(file)), { maxIssues: 100 })
  .then((report) => process.stdout.write(JSON.stringify(report)))
  .catch((error) => {
    process.stderr.write(String(error));
    process.exitCode = 1;
  });
