//! Collects the paths that a source file uses, made absolute.

use std::collections::BTreeMap;

use anyhow::Result;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

use super::Module;

/// Path segments below the root of the crate.
pub(super) type Path = Vec<String>;

/// A parsed file.
pub(super) struct Source {
    pub(super) path: Path,
    /// The module of the file, and its inline modules.
    pub(super) modules: BTreeMap<Path, Module>,
    /// Pairs of a module and a path that it uses.
    pub(super) uses: Vec<(Path, Path)>,
    /// Modules that exist only for tests.
    pub(super) for_tests: Vec<Path>,
}

impl Source {
    pub(super) fn parse(path: Path, text: &str) -> Result<Self> {
        let file = syn::parse_file(text)?;
        let mut source = Self {
            path: path.clone(),
            modules: BTreeMap::from([(path.clone(), Module::default())]),
            uses: Vec::new(),
            for_tests: Vec::new(),
        };
        let mut reader = Reader { source: &mut source, here: path };
        reader.visit_file(&file);
        Ok(source)
    }
}

struct Reader<'a> {
    source: &'a mut Source,
    here: Path,
}

impl Reader<'_> {
    fn module(&mut self) -> &mut Module {
        self.source.modules.entry(self.here.clone()).or_default()
    }

    /// Records a path that begins with `crate`, `self` or `super`.
    fn note(&mut self, segments: &[String]) {
        if let Some(path) = absolute(&self.here, segments) {
            self.source.uses.push((self.here.clone(), path));
        }
    }

    fn import(&mut self, tree: &UseTree, before: &[String]) {
        match tree {
            UseTree::Path(part) => {
                let before = [before, &[part.ident.to_string()]].concat();
                self.import(&part.tree, &before);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.import(tree, before);
                }
            }
            UseTree::Name(name) => self.imported(before, &name.ident.to_string(), None),
            UseTree::Rename(name) => {
                self.imported(before, &name.ident.to_string(), Some(name.rename.to_string()));
            }
            UseTree::Glob(_) => {
                self.note(before);
                let target = self.target(before);
                self.module().globs.push(target);
            }
        }
    }

    fn imported(&mut self, before: &[String], name: &str, rename: Option<String>) {
        let full = match name {
            "self" => before.to_vec(),
            name => [before, &[name.to_owned()]].concat(),
        };
        self.note(&full);
        let target = self.target(&full);
        let name = rename.or_else(|| full.last().cloned()).unwrap_or_default();
        self.module().imports.insert(name, target);
    }

    /// The target of an import. A path that begins with another name leads to a child module or to
    /// another crate. Paths to other crates are ignored.
    fn target(&self, segments: &[String]) -> Path {
        absolute(&self.here, segments).unwrap_or_else(|| [self.here.as_slice(), segments].concat())
    }

    /// Macros take any tokens. Paths in them are found by their first word.
    fn tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut segments = vec![first.to_string()];
                    while let (
                        Some(TokenTree::Punct(a)),
                        Some(TokenTree::Punct(b)),
                        Some(TokenTree::Ident(name)),
                    ) = (tokens.get(at), tokens.get(at + 1), tokens.get(at + 2))
                        && a.as_char() == ':'
                        && b.as_char() == ':'
                    {
                        segments.push(name.to_string());
                        at += 3;
                    }
                    if segments.len() > 1 {
                        self.note(&segments);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_for_tests(attributes(item)) {
            if let Item::Mod(module) = item {
                let path = [self.here.as_slice(), &[module.ident.to_string()]].concat();
                self.source.for_tests.push(path);
            }
            return;
        }
        if let Some(name) = name(item) {
            self.module().items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() {
            self.here.push(module.ident.to_string());
            self.module();
            visit::visit_item_mod(self, module);
            self.here.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.import(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.note(&segments);
        visit::visit_path(self, path);
    }

    /// `pub(in super::super)` restricts visibility. It does not use the module.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }
}

/// A path that begins with `crate`, `self` or `super`, from the root of the crate on.
fn absolute(here: &[String], segments: &[String]) -> Option<Path> {
    let mut path = here.to_vec();
    let mut rest = segments;
    match segments.first()?.as_str() {
        "crate" => path.clear(),
        "self" if segments.len() > 1 => {}
        "super" => {
            while let [first, more @ ..] = rest
                && first == "super"
            {
                path.pop();
                rest = more;
            }
            path.extend_from_slice(rest);
            return Some(path);
        }
        _ => return None,
    }
    path.extend_from_slice(rest.get(1..)?);
    Some(path)
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Mod(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
