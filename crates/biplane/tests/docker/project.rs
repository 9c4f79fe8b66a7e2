//! Tests functions of a project in containers.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use bollard::models::ContainerInspectResponse;
use bollard::query_parameters::{
    DownloadFromContainerOptions, InspectContainerOptions, RemoveImageOptions, TagImageOptions,
};
use flate2::Compression;
use flate2::read::GzEncoder;
use tokio_stream::StreamExt;

use crate::Case;
use crate::daemon::Daemon;
use crate::images::{DEAF, FUNCTION, tag_with};
use crate::work::{Ran, Work, stop, until};

pub(crate) const CASES: &[Case] = &[
    ("kcl_runs_in_the_image_that_runs_kcl", kcl_runs_in_the_image_that_runs_kcl),
    ("templates_run_in_the_image_that_runs_them", templates_run_in_the_image_that_runs_them),
    ("a_go_module_is_compiled_for_a_container", a_go_module_is_compiled_for_a_container),
    ("a_python_package_is_installed_in_a_container", a_python_package_is_installed_in_a_container),
    ("an_image_in_a_file_is_loaded", an_image_in_a_file_is_loaded),
    ("what_cannot_be_built_is_reported", what_cannot_be_built_is_reported),
    ("a_build_that_is_interrupted_leaves_nothing", a_build_that_is_interrupted_leaves_nothing),
];

const CONTRIB: &str = "xpkg.crossplane.io/crossplane-contrib";
const SERVE: &str = r#"exec /biplane function serve function-dummy "$@""#;
const ORPHAN: &str = "-a=render.crossplane.io/runtime-docker-cleanup=Orphan";

/// A project with a pipeline of one function.
struct Project<'a> {
    daemon: &'a Daemon,
    work: Work<'a>,
    /// More fields of the project file's spec.
    spec: String,
}

impl<'a> Project<'a> {
    fn new(daemon: &'a Daemon) -> Self {
        Self { daemon, work: Work::with(daemon, FUNCTION, &[]), spec: String::new() }
    }

    /// With an image that replaces another. The other may be known only by its digest.
    fn with_image(mut self, other: &str, ours: &str) -> Self {
        if self.spec.is_empty() {
            self.spec.push_str("  imageConfigs:\n");
        }
        let image = format!(
            "  - metadata: {{name: c}}\n    spec:\n      matchImages: [{{prefix: '{other}'}}]\n      rewriteImage: {{prefix: '{ours}'}}\n"
        );
        self.spec.push_str(&image);
        self
    }

    fn write(&self, path: &str, text: &str) -> String {
        self.work.write(path, text)
    }

    fn command(&self, function: &str, flags: &[&str]) -> Command {
        self.work.command(&[]);
        let composition = self.work.path("composition.yaml");
        let text = std::fs::read_to_string(&composition).unwrap();
        let named = format!("      name: acme-apps{function}\n");
        std::fs::write(&composition, text.replace("      name: first\n", &named)).unwrap();
        let spec = &self.spec;
        let project = self.write(
            "crossplane-project.yaml",
            &format!("apiVersion: dev.crossplane.io/v1alpha1\nkind: Project\nmetadata: {{name: apps}}\nspec:\n  repository: biplane.example/acme/apps\n{spec}"),
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_biplane"));
        command
            .arg("render")
            .args([self.work.path("xr.yaml"), composition])
            .args(["-r", "-f", &project])
            .args(flags)
            .env("DOCKER_HOST", self.daemon.host())
            .env("HOME", self.work.path(""))
            .stdin(Stdio::null());
        command
    }

    fn render(&self, function: &str, flags: &[&str]) -> Ran {
        Ran::of(&mut self.command(function, flags))
    }

    /// The only container, which is removed.
    fn only_container(&self) -> (ContainerInspectResponse, Vec<(String, u64)>) {
        let containers = self.daemon.containers();
        assert_eq!(containers.len(), 1, "{containers:?}");
        let id = containers[0].id.clone().unwrap();
        let docker = self.daemon.docker();
        let inspect = docker.inspect_container(&id, None::<InspectContainerOptions>);
        let found = self.daemon.wait(inspect).unwrap();
        let source = DownloadFromContainerOptions { path: "/src".to_owned() };
        let mut archive = Vec::new();
        self.daemon.wait(async {
            let mut parts = std::pin::pin!(docker.download_from_container(&id, Some(source)));
            // The folder may not exist.
            while let Some(Ok(part)) = parts.next().await {
                archive.extend(part);
            }
        });
        self.daemon.remove_all();
        let mut archive = tar::Archive::new(archive.as_slice());
        let files = archive.entries().into_iter().flatten().flatten();
        let file = |entry: tar::Entry<'_, &[u8]>| {
            (entry.path().unwrap().display().to_string(), entry.header().uid().unwrap())
        };
        (found, files.map(file).collect())
    }
}

/// The lines that report the build of a function.
fn built(function: &str) -> String {
    let head = "Resolving function dependencies...\n✓ Resolving function dependencies\n";
    format!("{head}Building function {function}...\n✓ Building function {function}\n")
}

/// An entry point that serves a function if a condition holds.
fn serve_if(condition: &str) -> String {
    let script = format!("{condition} || exit 9; {SERVE}");
    serde_json::json!(["/sh", "-c", script, "sh"]).to_string()
}

fn forget(daemon: &Daemon, image: &str) {
    let remove = daemon.docker().remove_image(image, None::<RemoveImageOptions>, None);
    daemon.wait(remove).unwrap();
}

/// RX-5, PJ-3, CLI-41
fn kcl_runs_in_the_image_that_runs_kcl(daemon: &Daemon) {
    let kcl = format!("{CONTRIB}/function-kcl");
    let condition = r#"read -r main < "$FUNCTION_KCL_DEFAULT_SOURCE/main.k" && read -r types < "$KCL_PKG_PATH/model/types.k" && [ "$main $types" = "items = [] schema S:" ]"#;
    tag_with(daemon, &kcl, "v0.12.1", &serve_if(condition));
    let project = Project::new(daemon);
    project.write("functions/model/kcl.mod", "");
    project.write("functions/model/main.k", "items = []\n");
    project.write("schemas/kcl/types.k", "schema S:\n");
    let link = project.work.path("functions/model/model");
    std::os::unix::fs::symlink("../../schemas/kcl", link).unwrap();
    let ran = project.render("model", &[]);
    ran.assert_rendered();
    assert_eq!(ran.stderr, built("model"));
    assert!(daemon.containers().is_empty());

    project.render("model", &[ORPHAN]).assert_rendered();
    let (found, files) = project.only_container();
    let config = found.config.unwrap();
    assert_eq!(config.image.unwrap(), format!("{kcl}:v0.12.1"));
    assert_eq!(config.cmd.unwrap(), ["--insecure"]);
    let own = |path: &str| (path.to_owned(), 2000);
    let names = ["src/", "src/kcl.mod", "src/main.k", "src/model/", "src/model/types.k"];
    assert_eq!(files, names.map(own));

    // Annotations apply to it like to any other function.
    let other = format!("-a=render.crossplane.io/runtime-docker-image={FUNCTION}");
    let ran = project.render("model", &[&other]);
    ran.assert_rendered();
    assert!(!ran.stderr.contains("Building"), "{}", ran.stderr);
    let warm = "-a=render.crossplane.io/runtime-docker-name=warm";
    for said in [built("model"), built("model").split_inclusive('\n').take(2).collect()] {
        let ran = project.render("model", &[ORPHAN, warm]);
        ran.assert_rendered();
        assert_eq!(ran.stderr, said, "one that is there is not built again");
    }
    daemon.remove_all();
    // Also under another engine.
    let engine = format!("--crossplane-image={}", crate::images::ENGINE);
    project.render("model", &[&engine]).assert_rendered();
    forget(daemon, &format!("{kcl}:v0.12.1"));
}

/// RX-5, PJ-3
fn templates_run_in_the_image_that_runs_them(daemon: &Daemon) {
    let image = format!("{CONTRIB}/function-go-templating");
    let condition = r#"read -r line < "$FUNCTION_GO_TEMPLATING_DEFAULT_SOURCE/more/b.tmpl" && [ "$line" = "kind: B" ]"#;
    tag_with(daemon, &image, "v0.12.0", &serve_if(condition));
    let project = Project::new(daemon);
    project.write("functions/pages/a.yaml.gotmpl", "kind: A\n");
    project.write("functions/pages/more/b.tmpl", "kind: B\n");
    // Templates cannot run as a local process.
    let ran = project.render("pages", &["--allow-process"]);
    ran.assert_rendered();
    assert_eq!(ran.stderr, built("pages"));
    forget(daemon, &format!("{image}:v0.12.0"));
    // A missing image is pulled.
    let project = project.with_image(&format!("{image}:v0.12.0"), "127.0.0.1:9/templates:v1");
    let ran = project.render("pages", &[]);
    ran.assert_failed(r#"biplane: error: cannot build embedded functions: failed to build function "pages": failed to build runtime images: failed to fetch go-templating base image: failed to pull image "127.0.0.1:9/templates:v1": Error response from daemon: "#);
    let said = "Building function pages...\nPulling image 127.0.0.1:9/templates:v1...\n✗ Pulling image 127.0.0.1:9/templates:v1\n✗ Building function pages\n";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

const GO_BASE: &str = "gcr.io/distroless/static-debian12@sha256:a9329520abc449e3b14d5bc3a6ffae065bdde0f02667fa10880c49b35c109fd1";

/// RX-5, PJ-3
fn a_go_module_is_compiled_for_a_container(daemon: &Daemon) {
    let project = Project::new(daemon).with_image(GO_BASE, FUNCTION);
    project.write("functions/compose/go.mod", "module example.org/compose\n");
    let condition = r#"read -r line < "$KO_DATA_PATH/greeting" && [ "$line" = hello ]"#;
    let main = format!("#!/bin/sh\n{condition} || exit 9\n{SERVE}\n");
    project.write("functions/compose/main.go", &main);
    project.write("functions/compose/kodata/greeting", "hello\n");
    // A fake compiler whose output is the program under test.
    let version = daemon.wait(daemon.docker().version()).unwrap();
    let architecture = version.arch.unwrap();
    let go = project.write(
        "bin/go",
        &format!("#!/bin/sh\necho 'main.go:1: wrong' >&2\n[ \"$1 $2 $4\" = 'build -o .' ] && [ -e go.mod ] && [ \"$CGO_ENABLED $GOOS $GOARCH\" = '0 linux {architecture}' ] && cp main.go \"$3\"\n"),
    );
    std::fs::set_permissions(go, PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", project.work.path("bin").display());
    let render = |flags: &[&str]| Ran::of(project.command("compose", flags).env("PATH", &path));
    let ran = render(&[ORPHAN]);
    ran.assert_rendered();
    assert_eq!(ran.stderr, built("compose"));
    let (found, _) = project.only_container();
    assert_eq!(found.config.unwrap().entrypoint.unwrap(), ["/ko-app/compose"]);

    std::fs::remove_file(project.work.path("functions/compose/main.go")).unwrap();
    let ran = render(&[]);
    ran.assert_failed("cannot build embedded functions: failed to build function \"compose\": failed to build runtime images: failed to build function: go build: exit status: 1:\n");
    assert!(ran.stderr.contains("main.go:1: wrong"), "{}", ran.stderr);
}

/// RX-5, PJ-3
fn a_python_package_is_installed_in_a_container(daemon: &Daemon) {
    let project = Project::new(daemon)
        .with_image("docker.io/library/debian:13-slim", "biplane.example/tests:base")
        .with_image("gcr.io/distroless/python3-debian13:nonroot", FUNCTION);
    project.write("functions/compose/pyproject.toml", "");
    project.write("functions/compose/.venv/bin/python", "");
    project.write("schemas/python/types", "types\n");
    let condition = r#"read -r line < "${0%/bin/function}/types" && [ "$line" = types ]"#;
    let main = project.write(
        "functions/compose/function/main.py",
        &format!("#!/bin/sh\n{condition} || exit 9\n{SERVE}\n"),
    );
    std::fs::set_permissions(main, PermissionsExt::from_mode(0o755)).unwrap();
    let ran = project.render("compose", &[ORPHAN]);
    ran.assert_rendered();
    assert_eq!(ran.stderr, built("compose"));
    let (found, _) = project.only_container();
    let config = found.config.unwrap();
    let entry_point = config.entrypoint.unwrap().concat();
    assert!(entry_point.ends_with("/lib/python3.13/site-packages/bin/function"), "{entry_point}");
    assert_eq!(
        (config.user.unwrap().as_str(), config.working_dir.unwrap().as_str()),
        ("nonroot:nonroot", "/")
    );

    std::fs::remove_file(project.work.path("schemas/python/types")).unwrap();
    let ran = project.render("compose", &[]);
    ran.assert_failed("cannot build embedded functions: failed to build function \"compose\": failed to build runtime images: python build container failed: container exited with non-zero status: 1, logs: ");
    assert!(ran.stderr.contains("schemas/python/types"), "{}", ran.stderr);
}

/// RX-5, PJ-2
fn an_image_in_a_file_is_loaded(daemon: &Daemon) {
    let docker = daemon.docker();
    let (repository, own) = ("biplane.example/saved", "biplane.example/saved:own");
    let tag = TagImageOptions { repo: Some(repository.into()), tag: Some("own".into()) };
    daemon.wait(docker.tag_image(FUNCTION, Some(tag))).unwrap();
    let mut saved = Vec::new();
    daemon.wait(async {
        let mut export = std::pin::pin!(docker.export_image(own));
        while let Some(part) = export.next().await {
            saved.extend(part.unwrap());
        }
    });
    forget(daemon, own);
    let mut compressed = Vec::new();
    GzEncoder::new(saved.as_slice(), Compression::fast()).read_to_end(&mut compressed).unwrap();
    let architecture = daemon.wait(docker.version()).unwrap().arch.unwrap();
    let mut project = Project::new(daemon);
    project.spec =
        "  functions:\n  - {source: Tarball, tarball: {name: boxed, pathPrefix: out/boxed}}\n"
            .into();
    let name = format!("biplane.example/acme/apps_boxed:{architecture}");
    // The uncompressed file comes first; the other is then ignored.
    for (extension, bytes) in [("tar.gz", compressed), ("tar", saved)] {
        let file = format!("out/boxed-{architecture}.{extension}");
        project.write(&file, "");
        std::fs::write(project.work.path(&file), bytes).unwrap();
        let ran = project.render(
            "boxed",
            &[ORPHAN, "-a=render.crossplane.io/runtime-docker-pull-policy=Always"],
        );
        ran.assert_rendered();
        assert_eq!(ran.stderr, built("boxed"));
        assert_eq!(project.only_container().0.config.unwrap().image.unwrap(), name);
        assert!(
            daemon.wait(docker.inspect_image(own)).is_err(),
            "the name in the file is not taken"
        );
        forget(daemon, &name);
        project.write(&file, "no archive");
    }
    let ran = project.render("boxed", &[]);
    ran.assert_failed(&format!(
        r#"biplane: error: cannot build embedded functions: failed to build function "boxed": failed to load runtime image for architecture "{architecture}" from "out/boxed-{architecture}.tar": "#
    ));
    project.spec = project.spec.replace("out/boxed", "out/other");
    project.render("boxed", &[]).assert_failed(&format!(
        r#"failed to build function "boxed": no runtime image found for architecture "{architecture}": looked for [out/other-{architecture}.tar out/other-{architecture}.tar.gz]"#
    ));
}

/// RX-5
fn what_cannot_be_built_is_reported(daemon: &Daemon) {
    let project = Project::new(daemon);
    project.write("functions/model/kcl.mod", "");
    let far = |flags: &[&str]| {
        Ran::of(project.command("model", flags).env("DOCKER_HOST", "tcp://127.0.0.1:9"))
    };
    far(&[]).assert_failed("biplane: error: cannot build embedded functions: failed to build function \"model\": Cannot connect to the Docker daemon at tcp://127.0.0.1:9. Is the docker daemon running?\n");
    let never = "-a=render.crossplane.io/runtime-docker-pull-policy=Never";
    let ran = project.render("model", &[never]);
    ran.assert_failed(r#"cannot start Function "acme-appsmodel": cannot create Docker container: image "xpkg.crossplane.io/crossplane-contrib/function-kcl:v0.12.1" not found and pull policy is "Never""#);
}

/// RX-13
fn a_build_that_is_interrupted_leaves_nothing(daemon: &Daemon) {
    let project = Project::new(daemon)
        .with_image("docker.io/library/debian:13-slim", DEAF)
        .with_image("gcr.io/distroless/python3-debian13:nonroot", FUNCTION);
    project.write("functions/compose/pyproject.toml", "");
    project.write("functions/compose/function/main.py", "");
    let mut command = project.command("compose", &[]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("a container that builds", || {
        daemon.containers().iter().any(|c| c.state.is_some_and(|s| s.to_string() == "running"))
    });
    let (code, stderr) = stop(child, "-INT");
    assert_eq!(code, Some(130), "{stderr}");
    assert!(
        stderr.ends_with("✗ Building function compose\nbiplane: error: interrupted\n"),
        "{stderr}"
    );
}
