//! Files that use each other, over any number of steps: none of them can be understood without the others.

mod names;

use crate::layering::program_files;
use names::{Found, Imports, Modules, is_test};
use std::collections::{BTreeMap, BTreeSet};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Item, ItemMod, ItemUse, Macro, Meta, Token, Type, VisRestricted, Visibility};

/// Circles that are allowed: a directory, the files in it, and why.
const ALLOWED: &[(&str, &[&str], &str)] = &[];

/// For each pair of files, the names that the first takes from the second.
type Ties = BTreeMap<(String, String), BTreeSet<String>>;

/// Reads the code of a module for names of other files.
struct Reader<'a> {
    modules: &'a Modules,
    module: String,
    ties: &'a mut Ties,
}

impl Reader<'_> {
    fn tie(&mut self, used: &str, name: String) {
        let file = self.modules.file(&self.module);
        if file != used {
            self.ties.entry((file.to_owned(), used.to_owned())).or_default().insert(name);
        }
    }

    /// Notes an item that the code names.
    fn item(&mut self, path: &[String]) {
        match self.modules.resolve(&self.module, path) {
            Some(Found::Item { file, name }) if !self.modules.is_variable(&self.module, path) => self.tie(&file, name),
            _ => {}
        }
    }

    /// Notes the items of paths with several names in tokens that are not parsed.
    fn tokens(&mut self, tokens: &str) {
        let joined = tokens.replace(" :: ", "::");
        for word in joined.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':') {
            let path: Vec<String> = word.split("::").take_while(|name| !name.is_empty()).map(str::to_owned).collect();
            if path.len() > 1 {
                self.item(&path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.content.is_some() {
            let inner = format!("{}::{}", self.module, item.ident);
            let outer = std::mem::replace(&mut self.module, inner);
            visit::visit_item_mod(self, item);
            self.module = outer;
        }
    }

    /// What is only passed on ties those who use it.
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if !matches!(item.vis, Visibility::Inherited) {
            return;
        }
        let mut imports = Imports::default();
        imports.visit_item_use(item);
        for (path, _) in imports.0.into_iter().filter(|(_, name)| name.is_some()) {
            match self.modules.resolve(&self.module, &path) {
                Some(Found::Module(module)) => self.tie(self.modules.file(&module), module),
                Some(Found::Item { file, name }) => self.tie(&file, name),
                None => {}
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.item(&names_of(path));
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        match call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated) {
            Ok(arguments) => arguments.iter().for_each(|argument| self.visit_expr(argument)),
            Err(_) => self.tokens(&call.tokens.to_string()),
        }
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(&list.tokens.to_string());
        }
    }

    /// `pub(super)` uses nothing.
    fn visit_vis_restricted(&mut self, _: &'ast VisRestricted) {}
}

/// The module that a file is: `src/kernel/spec.rs` is `crate::kernel::spec`. So are files of the crate below, whose modules
/// the program names as its own.
fn module_of(file: &str) -> String {
    let path = file.trim_start_matches("base/").trim_start_matches("src/").trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { "crate".to_owned() } else { format!("crate::{}", path.replace('/', "::")) }
}

fn names_of(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn modules(files: &[(&str, syn::File)]) -> Modules {
    let mut modules = Modules::default();
    files.iter().for_each(|(file, parsed)| modules.add(&module_of(file), file, &parsed.items));
    modules
}

/// What ties the files of a crate, given as their names and texts.
fn ties(files: &[(&str, &str)]) -> Ties {
    let parsed: Vec<_> = files.iter().map(|(file, text)| (*file, syn::parse_file(text).unwrap())).collect();
    let modules = modules(&parsed);
    let mut ties = Ties::new();
    for (file, parsed) in &parsed {
        Reader { modules: &modules, module: module_of(file), ties: &mut ties }.visit_file(parsed);
    }
    ties
}

/// What a file uses over any number of steps, with the files that implement something for what is used.
pub fn reached<'a>(files: &[(&'a str, &'a str)], from: &str) -> BTreeSet<String> {
    let mut direct: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let parsed: Vec<_> = files.iter().map(|(file, text)| (*file, syn::parse_file(text).unwrap())).collect();
    let modules = modules(&parsed);
    for (user, used) in ties(files).into_keys() {
        direct.entry(user).or_default().insert(used);
    }
    for (file, parsed) in &parsed {
        for item in parsed.items.iter().filter(|item| !is_test(item)) {
            let Item::Impl(implementation) = item else { continue };
            let of_trait = implementation.trait_.as_ref().map(|(_, path, _)| path);
            let of_type = match &*implementation.self_ty {
                Type::Path(of_type) => Some(&of_type.path),
                _ => None,
            };
            for path in of_trait.into_iter().chain(of_type) {
                if let Some(Found::Item { file: used, .. }) = modules.resolve(&module_of(file), &names_of(path)) {
                    direct.entry(used).or_default().insert((*file).to_owned());
                }
            }
        }
    }
    let mut found = BTreeSet::new();
    let mut open = vec![from.to_owned()];
    while let Some(file) = open.pop() {
        open.extend(direct.get(&file).into_iter().flatten().filter(|next| found.insert((*next).clone())).cloned());
    }
    found
}

/// All sets of files of which each uses every other, over any number of steps.
fn circles(ties: &Ties) -> BTreeSet<BTreeSet<&str>> {
    let mut direct: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (user, used) in ties.keys() {
        direct.entry(user).or_default().insert(used);
    }
    let mut used = direct.clone();
    for files in used.values_mut() {
        let mut open: Vec<&str> = files.iter().copied().collect();
        while let Some(file) = open.pop() {
            open.extend(direct.get(file).into_iter().flatten().filter(|&&next| files.insert(next)));
        }
    }
    let uses = |user: &str, file: &str| used.get(user).is_some_and(|used| used.contains(file));
    let circle = |file: &str| used[file].iter().copied().filter(|other| uses(other, file)).collect();
    used.keys().map(|file| circle(file)).filter(|circle: &BTreeSet<&str>| !circle.is_empty()).collect()
}

/// The ties among some files, a line for each.
fn described(ties: &Ties, files: &BTreeSet<&str>) -> String {
    let within = ties.iter().filter(|((user, used), _)| files.contains(user.as_str()) && files.contains(used.as_str()));
    let line = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    within.map(|((user, used), names)| format!("  {user} -> {used}: {}\n", line(names))).collect()
}

#[test]
fn no_circle_of_files() {
    let files: Vec<(String, String)> =
        program_files().into_iter().map(|(path, text)| (path.to_str().unwrap().to_owned(), text)).collect();
    // the program is another crate, which nothing uses
    let library = files.iter().filter(|(file, _)| file != "src/main.rs");
    let ties = ties(&library.map(|(file, text)| (file.as_str(), text.as_str())).collect::<Vec<_>>());
    assert!(ties.len() > 1000, "{} ties are too few: most were not found", ties.len());
    let allowed: Vec<BTreeSet<String>> = ALLOWED
        .iter()
        .map(|(directory, files, _)| files.iter().map(|file| format!("{directory}/{file}")).collect())
        .collect();
    let allowed: BTreeSet<BTreeSet<&str>> =
        allowed.iter().map(|files| files.iter().map(String::as_str).collect()).collect();
    let found = circles(&ties);
    let gone: Vec<_> = allowed.difference(&found).collect();
    assert!(gone.is_empty(), "ALLOWED has circles that are none; change them: {gone:#?}");
    let circles: Vec<String> = found.difference(&allowed).map(|circle| described(&ties, circle)).collect();
    assert!(circles.is_empty(), "files use each other; move what both use below them:\n{}", circles.join("\n"));
}

/// The circles of a crate, and all ties.
fn read(files: &[(&str, &str)]) -> (Vec<Vec<String>>, String) {
    let ties = ties(files);
    let found = circles(&ties).into_iter().map(|circle| circle.into_iter().map(str::to_owned).collect()).collect();
    let all = files.iter().map(|(file, _)| *file).collect();
    (found, described(&ties, &all))
}

#[test]
fn a_circle_leads_through_re_exports() {
    let (found, _) = read(&[
        ("src/lib.rs", "mod a; mod top;"),
        ("src/a/mod.rs", "mod one; mod two; pub use one::One; pub(crate) use two::{Two as Second};"),
        ("src/a/one.rs", "use super::Second; pub struct One(Second);"),
        ("src/a/two.rs", "pub struct Two; fn of(_: crate::a::One) {}"),
        ("src/top.rs", "use crate::a::{One, Second};"),
    ]);
    assert_eq!(found, [["src/a/one.rs", "src/a/two.rs"]]);
}

#[test]
fn a_circle_leads_through_nested_imports() {
    let (found, ties) = read(&[
        ("src/lib.rs", "mod a; mod b;"),
        ("src/a.rs", "use crate::{b::{deep::{low, Deep as D}, self}}; fn f() { low(b::go()); } pub struct A;"),
        ("src/b/mod.rs", "pub mod deep; mod other; pub use other::*;"),
        ("src/b/deep.rs", "use super::super::a::{self}; pub struct Deep(a::A); pub fn low() {}"),
        ("src/b/other.rs", "pub fn go() {}"),
    ]);
    assert_eq!(found, [["src/a.rs", "src/b/deep.rs"]]);
    let expected = "  src/a.rs -> src/b/deep.rs: Deep, low\n  src/a.rs -> src/b/mod.rs: crate::b\n  \
                    src/a.rs -> src/b/other.rs: go\n  src/b/deep.rs -> src/a.rs: A, crate::a\n";
    assert_eq!(ties, expected);
}

#[test]
fn a_module_that_uses_its_parts_is_not_for_them() {
    let parts = |root: &'static str| {
        [("src/lib.rs", "mod a;"), ("src/a/mod.rs", root), ("src/a/b.rs", "use super::A; pub fn b() {}")]
    };
    let (found, _) = read(&parts("mod b; pub struct A; fn f() { vec![b::b()]; }"));
    assert_eq!(found, [["src/a/b.rs", "src/a/mod.rs"]]);
    // what a macro declares is of the module that calls it
    let (found, _) = read(&parts("mod b; declare! { A of b::b }"));
    assert_eq!(found, [["src/a/b.rs", "src/a/mod.rs"]]);
    // passing them on is no use, nor are tests and variables of the same name
    let (found, _) = read(&parts(
        "mod b; pub use b::b; pub struct A; fn f(b: u8) -> u8 { b }
        #[cfg(test)] mod tests { fn t() { super::b() } }",
    ));
    assert!(found.is_empty(), "{found:?}");
}
