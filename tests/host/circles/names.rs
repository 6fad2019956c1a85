//! Where the names that the code of a crate uses are declared, by its `use` declarations and paths.

use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, Meta, PatIdent, UseTree};

/// What a path leads to.
pub enum Found {
    Module(String),
    Item { file: String, name: String },
}

/// What a module declares and imports.
#[derive(Default)]
struct Module {
    file: String,
    items: BTreeSet<String>,
    imports: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names are imported.
    globs: Vec<Vec<String>>,
    /// Whether macros declare more items.
    has_macros: bool,
    /// Names of variables, which hide items that are imported.
    variables: BTreeSet<String>,
}

/// The modules of a crate by their paths, such as `crate::kernel::spec`.
#[derive(Default)]
pub struct Modules(BTreeMap<String, Module>);

/// Names whose imports are being followed: such a name leads nowhere if its import leads back to it.
type Asked = BTreeSet<(String, String)>;

impl Modules {
    /// Adds the module of a file.
    pub fn add(&mut self, path: &str, file: &str, items: &[Item]) {
        let mut module = Module { file: file.to_owned(), ..Module::default() };
        for item in items.iter().filter(|item| !is_test(item)) {
            Variables(&mut module.variables).visit_item(item);
            let name = match item {
                Item::Const(item) => &item.ident,
                Item::Enum(item) => &item.ident,
                Item::Fn(item) => &item.sig.ident,
                Item::Static(item) => &item.ident,
                Item::Struct(item) => &item.ident,
                Item::Trait(item) => &item.ident,
                Item::Type(item) => &item.ident,
                Item::Macro(item) => match &item.ident {
                    Some(name) => name,
                    None => {
                        module.has_macros = true;
                        continue;
                    }
                },
                Item::Mod(ItemMod { ident, content: Some((_, items)), .. }) => {
                    self.add(&format!("{path}::{ident}"), file, items);
                    continue;
                }
                _ => continue,
            };
            module.items.insert(name.to_string());
        }
        let mut imports = Imports::default();
        items.iter().filter(|item| !is_test(item)).for_each(|item| imports.visit_item(item));
        for (path, name) in imports.0 {
            match name {
                Some(name) => drop(module.imports.insert(name, path)),
                None => module.globs.push(path),
            }
        }
        self.0.insert(path.to_owned(), module);
    }

    /// The file that a module is in.
    pub fn file(&self, path: &str) -> &str {
        &self.0[path].file
    }

    /// Whether a name without a path is one of a variable.
    pub fn is_variable(&self, module: &str, path: &[String]) -> bool {
        path.len() == 1 && self.0[module].variables.contains(&path[0])
    }

    /// What a path in the code of a module leads to, if it is in the crate.
    pub fn resolve(&self, from: &str, path: &[String]) -> Option<Found> {
        self.follow(from, path, &mut Asked::new())
    }

    fn follow(&self, from: &str, path: &[String], asked: &mut Asked) -> Option<Found> {
        let mut module = from.to_owned();
        for (at, name) in path.iter().enumerate() {
            let is_last = at + 1 == path.len();
            module = match name.as_str() {
                "crate" => "crate".to_owned(),
                "self" => module,
                "super" => module.rsplit_once("::")?.0.to_owned(),
                name => {
                    let from_macro = || (at > 0 && self.0[&module].has_macros).then(|| self.item(&module, name));
                    match self.lookup(&module, name, is_last, asked).or_else(from_macro)? {
                        Found::Module(module) => module,
                        // what follows is a member of it
                        item => return Some(item),
                    }
                }
            };
        }
        Some(Found::Module(module))
    }

    fn item(&self, module: &str, name: &str) -> Found {
        Found::Item { file: self.file(module).to_owned(), name: name.to_owned() }
    }

    /// A name in a module: declared there, or imported. The last of a path is rather an item than a module of that name.
    fn lookup(&self, path: &str, name: &str, is_last: bool, asked: &mut Asked) -> Option<Found> {
        let module = &self.0[path];
        let child = format!("{path}::{name}");
        let child = self.0.contains_key(&child).then_some(Found::Module(child));
        if !is_last && child.is_some() {
            return child;
        }
        if module.items.contains(name) {
            return Some(self.item(path, name));
        }
        if !asked.insert((path.to_owned(), name.to_owned())) {
            return child;
        }
        let import = module.imports.get(name).and_then(|import| self.follow(path, import, asked));
        import.or(child).or_else(|| {
            module.globs.iter().find_map(|glob| match self.follow(path, glob, asked)? {
                Found::Module(source) => self.lookup(&source, name, is_last, asked),
                Found::Item { .. } => None,
            })
        })
    }
}

/// The paths that `use` declarations import, with the names that they get; none for all names of a module.
#[derive(Default)]
pub struct Imports(pub Vec<(Vec<String>, Option<String>)>);

impl Imports {
    fn add(&mut self, mut path: Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(tree) => {
                path.push(tree.ident.to_string());
                self.add(path, &tree.tree);
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.add(path.clone(), tree)),
            UseTree::Glob(_) => self.0.push((path, None)),
            UseTree::Name(tree) if tree.ident == "self" => self.0.push((path.clone(), path.pop())),
            UseTree::Name(tree) => {
                path.push(tree.ident.to_string());
                self.0.push((path, Some(tree.ident.to_string())));
            }
            UseTree::Rename(tree) => {
                path.extend((tree.ident != "self").then(|| tree.ident.to_string()));
                self.0.push((path, Some(tree.rename.to_string())));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item_mod(&mut self, _: &'ast ItemMod) {}

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add(Vec::new(), &item.tree);
    }
}

struct Variables<'a>(&'a mut BTreeSet<String>);

impl<'ast> Visit<'ast> for Variables<'_> {
    fn visit_pat_ident(&mut self, pattern: &'ast PatIdent) {
        self.0.insert(pattern.ident.to_string());
        visit::visit_pat_ident(self, pattern);
    }
}

/// Whether an item is only there in tests.
pub fn is_test(item: &Item) -> bool {
    let attributes: &[Attribute] = match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(|attribute| {
        matches!(&attribute.meta, Meta::List(list) if list.path.is_ident("cfg") && list.tokens.to_string() == "test")
    })
}
