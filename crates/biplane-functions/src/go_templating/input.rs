//! The input of function-go-templating.

use std::sync::LazyLock;

use biplane_go::types::{Decoder, META, Mismatch, Types};
use biplane_model::Value;
use biplane_proto::Struct;
use biplane_template::Delimiters;

static TYPES: LazyLock<Types> = LazyLock::new(|| {
    Types::read(&[
        META,
        "v1beta1.GoTemplate apiVersion:string kind:string metadata:meta.ObjectMeta \
delims:v1beta1.Delims source:string=v1beta1.TemplateSource inline:v1beta1.TemplateSourceInline \
fileSystem:v1beta1.TemplateSourceFileSystem ttl:string \
environment:v1beta1.TemplateSourceEnvironment options:[]string
v1beta1.Delims left:string right:string
v1beta1.TemplateSourceInline template:string templates:[]string
v1beta1.TemplateSourceFileSystem dirPath:string
v1beta1.TemplateSourceEnvironment key:string",
    ])
});

/// Why the input could not be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "cannot get function input *v1beta1.GoTemplate from *v1.RunFunctionRequest: cannot unmarshal \
     JSON from *structpb.Struct into *v1beta1.GoTemplate: {0}"
)]
pub(super) struct InputError(std::sync::Arc<Mismatch>);

/// The decoded input. Nothing is checked that upstream does not check.
#[derive(Debug, Default)]
pub(super) struct Input {
    pub(super) delimiters: Delimiters,
    pub(super) source: String,
    pub(super) inline: Option<Inline>,
    /// The folder with templates.
    pub(super) folder: Option<String>,
    /// The key of the environment that holds the template.
    pub(super) environment_key: Option<String>,
    pub(super) ttl: String,
    /// An empty list is different from no list: it disables the default options.
    pub(super) options: Option<Vec<String>>,
}

#[derive(Debug, Default)]
pub(super) struct Inline {
    pub(super) template: String,
    pub(super) templates: Vec<String>,
}

impl Input {
    /// Decodes the input. An absent input is empty.
    pub(super) fn read(input: Option<&Struct>) -> Result<Self, InputError> {
        let Some(input) = input else { return Ok(Self::default()) };
        TYPES
            .check(input, "v1beta1.GoTemplate", Decoder::Strict)
            .map_err(|mismatch| InputError(mismatch.into()))?;
        let object = |key: &str| input.get(key).filter(|value| value.is_object());
        let delimiter = |side: &str| object("delims")?.get(side)?.as_str();
        let mut delimiters = Delimiters::default();
        if let (Some(left), Some(right)) = (delimiter("left"), delimiter("right")) {
            // An empty delimiter is the default one.
            if !left.is_empty() {
                left.clone_into(&mut delimiters.left);
            }
            if !right.is_empty() {
                right.clone_into(&mut delimiters.right);
            }
        }
        Ok(Self {
            delimiters,
            source: text(input.get("source")),
            inline: object("inline").map(|inline| Inline {
                template: text(inline.get("template")),
                templates: texts(inline.get("templates")).unwrap_or_default(),
            }),
            folder: object("fileSystem").map(|source| text(source.get("dirPath"))),
            environment_key: object("environment").map(|source| text(source.get("key"))),
            ttl: text(input.get("ttl")),
            options: texts(input.get("options")),
        })
    }
}

fn text(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    let items = value?.as_array()?;
    Some(items.iter().map(|item| text(Some(item))).collect())
}
