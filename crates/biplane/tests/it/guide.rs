//! Every command of the guide to rendering, run.

use std::path::Path;
use std::process::Command;

use crate::support::Folder;

#[test]
fn every_command_of_the_guide_works() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = std::fs::read_to_string(root.join("docs/render.md")).unwrap();
    let folder = Folder::new();
    for file in ["xr.yaml", "composition.yaml", "functions.yaml"] {
        let example = root.join("examples/first-composition").join(file);
        folder.write(file, &std::fs::read_to_string(example).unwrap());
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_biplane")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", binary.display());
    let commands: Vec<_> =
        guide.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert!(commands.len() >= 7);
    for command in commands {
        let output = Command::new("sh")
            .args(["-ec", command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}{stderr}");
        let printed = !output.stdout.is_empty() || command.contains('>');
        assert!(printed, "{command}");
    }
}
