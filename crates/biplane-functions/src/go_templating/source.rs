//! Gets the text of the template from where the input says.

use std::borrow::Cow;

use biplane_function::resource::ENVIRONMENT_CONTEXT_KEY;
use biplane_function::v1::RunFunctionRequest;
use biplane_model::Value;

use super::files::Files;
use super::input::Input;

/// Stands between the templates of a list, and behind each file.
const SEPARATOR: &str = "\n---\n";

/// Why there is no template.
#[derive(Debug, thiserror::Error)]
pub(super) enum SourceError {
    #[error("source is required")]
    Missing,
    #[error("invalid source: {0}")]
    Unknown(String),
    #[error("inline.template or inline.templates should be provided")]
    Inline,
    #[error("fileSystem.dirPath should be provided")]
    Folder,
    #[error("cannot read tmpl from the folder {{{folder}}}: {error}")]
    Files { folder: String, error: String },
    #[error("environment.key should be provided")]
    EnvironmentKey,
    #[error(
        "cannot read tmpl from the environment: {ENVIRONMENT_CONTEXT_KEY} key does not exist in \
         context"
    )]
    Environment,
    #[error("cannot read tmpl from the environment: key: {0} does not exist")]
    NoSuchKey(String),
    #[error("cannot read tmpl from the environment: key: {0} value is not a string")]
    NotText(String),
}

/// Returns the text of the template.
pub(super) fn text<'a>(
    input: &'a Input,
    request: &'a RunFunctionRequest,
    files: &Files,
    default_folder: &str,
) -> Result<Cow<'a, str>, SourceError> {
    match input.source.as_str() {
        "" if !default_folder.is_empty() => of_files(default_folder, files),
        "" => Err(SourceError::Missing),
        "Inline" => inline(input),
        "FileSystem" => match input.folder.as_deref() {
            None | Some("") => Err(SourceError::Folder),
            Some(folder) => of_files(folder, files),
        },
        "Environment" => match input.environment_key.as_deref() {
            None | Some("") => Err(SourceError::EnvironmentKey),
            Some(key) => environment(request, key),
        },
        other => Err(SourceError::Unknown(other.to_owned())),
    }
}

fn inline(input: &Input) -> Result<Cow<'_, str>, SourceError> {
    let inline = input.inline.as_ref().ok_or(SourceError::Inline)?;
    match (inline.template.as_str(), inline.templates.as_slice()) {
        ("", []) => Err(SourceError::Inline),
        ("", templates) => Ok(Cow::Owned(templates.join(SEPARATOR))),
        (template, _) => Ok(Cow::Borrowed(template)),
    }
}

fn of_files(folder: &str, files: &Files) -> Result<Cow<'static, str>, SourceError> {
    let texts = files
        .read(folder)
        .map_err(|error| SourceError::Files { folder: folder.to_owned(), error })?;
    Ok(Cow::Owned(texts.into_iter().map(|text| text + SEPARATOR).collect()))
}

fn environment<'a>(
    request: &'a RunFunctionRequest,
    key: &str,
) -> Result<Cow<'a, str>, SourceError> {
    let context = request.context.as_ref();
    let environment = context.and_then(|context| context.get(ENVIRONMENT_CONTEXT_KEY));
    let environment = environment.and_then(Value::as_object).ok_or(SourceError::Environment)?;
    match environment.get(key) {
        None => Err(SourceError::NoSuchKey(key.to_owned())),
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(_) => Err(SourceError::NotText(key.to_owned())),
    }
}
