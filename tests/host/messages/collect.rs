//! Collects messages from the source: what is given to errors, and lines that begin with `warning: ` or `note: `.

use std::collections::HashMap;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprCall, ExprMethodCall, ItemFn, Lit, Local, Macro, Pat, ReturnType, Token, Type};

/// A message, with placeholders in capitals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Message {
    /// Variant of the error, `note`, or nothing for a text that a caller makes an error of.
    pub kind: String,
    pub file: String,
    pub text: String,
}

/// A function or closure that makes an error of texts.
#[derive(Clone, Debug)]
struct Maker {
    kind: String,
    template: String,
    parameters: Vec<String>,
}

/// Makers by file and name, those of all files under the file ``.
type Makers = HashMap<(String, String), Option<Maker>>;

/// All messages of the files, each a path and its text.
pub fn messages(files: &[(String, String)]) -> Vec<Message> {
    let parsed: Vec<(&String, syn::File)> =
        files.iter().map(|(path, text)| (path, syn::parse_file(text).unwrap())).collect();
    let (mut makers, mut constants) = (Makers::new(), HashMap::new());
    for (path, file) in &parsed {
        FindMakers { file: path, makers: &mut makers, constants: &mut constants }.visit_file(file);
    }
    let mut found = Vec::new();
    for (path, file) in &parsed {
        let mut collect = Collect { file: path, makers: &makers, contexts: Vec::new(), found: &mut found };
        collect.visit_file(file);
    }
    for message in &mut found {
        for ((file, name), text) in &constants {
            if file.is_empty() || *file == message.file {
                message.text = message.text.replace(name, text);
            }
        }
    }
    found.retain(|message| !is_wrapper(&message.text));
    found.sort();
    found.dedup();
    found
}

/// Whether a text only says where the text of another message comes from, as `PATH: --angles: E` does, or is the advice
/// that another message ends with.
fn is_wrapper(text: &str) -> bool {
    let inner = ["E", "ERROR", "MESSAGE", "NOTE", "AXIS", "WHAT", "WHY", "default"];
    let text = text.trim_end_matches(';');
    let wraps = text.rsplit_once([':', ' ']).is_some_and(|(before, last)| {
        let says = ["cannot", "failed", "left out", "; "].iter().any(|word| before.contains(word));
        inner.contains(&last) && !says && before.split(' ').filter(|word| is_plain(word)).count() <= 2
    });
    let words = text.split(' ').filter(|word| is_plain(word)).count();
    wraps || words == 0 || text.ends_with("which E") || super::advice::is_instruction(text)
}

/// Whether a word is neither a placeholder nor a flag.
fn is_plain(word: &str) -> bool {
    word.len() > 1 && !word.starts_with('-') && word.chars().all(|c| c.is_lowercase() || !c.is_alphanumeric())
}

/// Whether an item is for tests alone.
fn for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let text = attribute.meta.path().is_ident("cfg").then(|| match &attribute.meta {
            syn::Meta::List(list) => list.tokens.to_string(),
            _ => String::new(),
        });
        text.is_some_and(|text| text == "test" || text == "feature = \"test-hooks\"")
    })
}

/// The variant that a call makes, such as `Usage` for `Error::usage`.
fn variant(call: &Expr) -> Option<String> {
    let Expr::Path(path) = call else { return None };
    let words: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let [.., owner, name] = words.as_slice() else { return None };
    let (first, rest) = name.split_at(1);
    (owner == "Error").then(|| format!("{}{rest}", first.to_uppercase()))
}

/// What `Doubt::new` is given, as it is printed.
fn doubt(call: &ExprCall) -> Option<String> {
    let Expr::Path(path) = &*call.func else { return None };
    let words: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    if !words.ends_with(&["Doubt".into(), "new".into()]) {
        return None;
    }
    let [what, advice] = [1, 2].map(|argument| texts(&call.args[argument]).join(" or "));
    Some(format!("warning: {what}; {advice}"))
}

/// What is said to those who break a rule of the list of conflicts.
fn broken_rule(call: &ExprCall) -> Vec<String> {
    let Expr::Path(path) = &*call.func else { return Vec::new() };
    let words: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let [.., owner, kind] = words.as_slice() else { return Vec::new() };
    if owner != "Rule" {
        return Vec::new();
    }
    let [flags, others] = [0, 1].map(|argument| texts(&call.args[argument]));
    let what = texts(&call.args[2]).pop().unwrap_or_else(|| placeholder(&call.args[2]));
    if kind == "Needs" {
        let others = others.join(" or --");
        return flags.iter().map(|flag| format!("--{flag}: needs --{others}; {what}")).collect();
    }
    let pairs = flags.iter().flat_map(|a| others.iter().map(move |b| (a, b)));
    pairs.map(|(a, b)| format!("--{a} and --{b}: {what}")).collect()
}

/// Whether a call makes a note.
fn is_remark(call: &Expr) -> bool {
    let Expr::Path(path) = call else { return false };
    let words: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    words.ends_with(&["Remark".into(), "note".into()])
}

/// The format string of a macro with its placeholders in capitals, if it has one.
fn formatted(makro: &Macro) -> Option<String> {
    let name = makro.path.segments.last()?.ident.to_string();
    if !["format", "format_args"].contains(&name.as_str()) {
        return None;
    }
    let arguments = makro.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated).ok()?;
    let mut arguments = arguments.iter();
    let Some(Expr::Lit(literal)) = arguments.next() else { return None };
    let Lit::Str(text) = &literal.lit else { return None };
    Some(filled(&text.value(), &mut arguments))
}

/// A format string with the names of what is put in.
fn filled<'a>(text: &str, arguments: &mut impl Iterator<Item = &'a Expr>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            out.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let end = rest.find('}').unwrap();
        let name = rest[1..end].split(':').next().unwrap();
        let named = arguments_name(name).or_else(|| arguments.next().map(placeholder));
        out.push_str(&named.unwrap_or_else(|| "..".into()));
        rest = &rest[end + 1..];
    }
    out + rest
}

fn arguments_name(name: &str) -> Option<String> {
    (!name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| capitals(name))
}

fn capitals(name: &str) -> String {
    name.to_uppercase()
}

/// The word that stands for a value.
fn placeholder(value: &Expr) -> String {
    match value {
        Expr::Path(path) => capitals(&path.path.segments.last().unwrap().ident.to_string()),
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => capitals(&name.to_string()),
            syn::Member::Unnamed(_) => placeholder(&field.base),
        },
        Expr::MethodCall(call) => match call.method.to_string().as_str() {
            "len" | "count" => "COUNT".into(),
            "width" | "height" | "name" | "label" => capitals(&call.method.to_string()),
            _ => placeholder(&call.receiver),
        },
        Expr::Call(call) => call.args.first().map_or("..".into(), placeholder),
        Expr::Reference(inner) => placeholder(&inner.expr),
        Expr::Unary(inner) => placeholder(&inner.expr),
        Expr::Try(inner) => placeholder(&inner.expr),
        Expr::Paren(inner) => placeholder(&inner.expr),
        Expr::Index(inner) => placeholder(&inner.expr),
        Expr::Cast(inner) => placeholder(&inner.expr),
        Expr::Binary(inner) => placeholder(&inner.left),
        Expr::Lit(literal) => match &literal.lit {
            Lit::Str(text) => text.value(),
            _ => "..".into(),
        },
        _ => "..".into(),
    }
}

/// The texts in an expression that are no parts of other calls: what `format!` makes, and literals.
struct Texts(Vec<String>);

impl<'ast> Visit<'ast> for Texts {
    fn visit_macro(&mut self, makro: &'ast Macro) {
        self.0.extend(formatted(makro));
    }
    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if let Lit::Str(text) = &literal.lit {
            self.0.push(filled(&text.value(), &mut std::iter::empty()));
        }
    }
    /// literals in these are no messages
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        if ["into", "to_owned", "to_string", "unwrap_or", "unwrap_or_else", "as_str"].contains(&method.as_str()) {
            visit::visit_expr_method_call(self, call);
        }
    }
    fn visit_expr_if(&mut self, branch: &'ast syn::ExprIf) {
        self.visit_block(&branch.then_branch);
        if let Some((_, other)) = &branch.else_branch {
            self.visit_expr(other);
        }
    }
}

fn texts(expression: &Expr) -> Vec<String> {
    let mut texts = Texts(Vec::new());
    texts.visit_expr(expression);
    texts.0
}

struct FindMakers<'a> {
    file: &'a str,
    makers: &'a mut Makers,
    /// Constant texts, of which messages take the first line.
    constants: &'a mut HashMap<(String, String), String>,
}

/// The first call of an error's variant in a body.
struct FirstVariant(Option<(String, String)>);

impl<'ast> Visit<'ast> for FirstVariant {
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let (None, Some(kind)) = (&self.0, variant(&call.func)) {
            let text = call.args.iter().flat_map(texts).collect::<Vec<_>>();
            let prefix = if ["Input", "Output", "Profile"].contains(&kind.as_str()) && call.args.len() == 2 {
                call.args.first().map_or(String::new(), |path| format!("{}: ", placeholder(path)))
            } else {
                String::new()
            };
            let last = call.args.last().map_or(String::new(), placeholder);
            self.0 = Some((kind, prefix + text.first().unwrap_or(&last)));
        }
        visit::visit_expr_call(self, call);
    }
}

impl<'ast> Visit<'ast> for FindMakers<'_> {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        let returns_error = match &function.sig.output {
            ReturnType::Type(_, kind) => matches!(&**kind, Type::Path(path) if path.path.is_ident("Error")),
            ReturnType::Default => false,
        };
        if returns_error {
            let mut first = FirstVariant(None);
            first.visit_block(&function.block);
            let parameters = function.sig.inputs.iter().map(|input| match input {
                syn::FnArg::Typed(typed) => pattern(&typed.pat),
                syn::FnArg::Receiver(_) => "self".into(),
            });
            if let Some((kind, template)) = first.0 {
                let maker = Maker { kind, template, parameters: parameters.collect() };
                let name = function.sig.ident.to_string();
                self.makers.insert((self.file.to_owned(), name.clone()), Some(maker.clone()));
                if !matches!(function.vis, syn::Visibility::Inherited) {
                    self.makers.insert((String::new(), name), Some(maker));
                }
            }
        }
        visit::visit_item_fn(self, function);
    }
    fn visit_item_const(&mut self, constant: &'ast syn::ItemConst) {
        if let Expr::Lit(literal) = &*constant.expr
            && let Lit::Str(text) = &literal.lit
        {
            let file = match constant.vis {
                syn::Visibility::Inherited => self.file,
                _ => "",
            };
            let first = text.value().lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
            self.constants.insert((file.to_owned(), constant.ident.to_string()), first);
        }
    }
    fn visit_local(&mut self, local: &'ast Local) {
        if let Some(init) = &local.init
            && let Expr::Closure(closure) = &*init.expr
        {
            let mut first = FirstVariant(None);
            first.visit_expr(&closure.body);
            // a closure that makes no error hides functions of its name that do
            let maker = first.0.map(|(kind, template)| {
                let parameters = closure.inputs.iter().map(pattern).collect();
                Maker { kind, template, parameters }
            });
            let key = (self.file.to_owned(), pattern(&local.pat));
            if maker.is_some() || !self.makers.contains_key(&key) {
                self.makers.insert(key, maker);
            }
        }
        visit::visit_local(self, local);
    }
}

fn pattern(pattern: &Pat) -> String {
    match pattern {
        Pat::Ident(name) => name.ident.to_string(),
        Pat::Type(typed) => self::pattern(&typed.pat),
        _ => String::new(),
    }
}

struct Collect<'a> {
    file: &'a str,
    makers: &'a Makers,
    /// What the texts around this place become.
    contexts: Vec<Option<Maker>>,
    found: &'a mut Vec<Message>,
}

impl Collect<'_> {
    fn add(&mut self, text: &str) {
        let is_note = text.starts_with("warning: ") || text.starts_with("note: ");
        let context = self.contexts.last().cloned().flatten();
        let (kind, text) = match context {
            _ if is_note => ("note".to_owned(), text.to_owned()),
            Some(maker) => {
                let place = maker.parameters.first().map(|name| capitals(name));
                match place.filter(|place| !place.is_empty() && maker.template.contains(place.as_str())) {
                    Some(place) => (maker.kind, maker.template.replacen(&place, text, 1)),
                    None => (maker.kind, text.to_owned()),
                }
            }
            None => return,
        };
        if text.split_whitespace().count() > 1 {
            let text = text.replace('\n', "; ").split_whitespace().collect::<Vec<_>>().join(" ");
            self.found.push(Message { kind, file: self.file.to_owned(), text });
        }
    }

    fn within(&mut self, context: Option<Maker>, look: impl FnOnce(&mut Self)) {
        self.contexts.push(context);
        look(self);
        self.contexts.pop();
    }

    fn maker(&self, name: &str) -> Option<&Maker> {
        let of = |file: &str| self.makers.get(&(file.to_owned(), name.to_owned()));
        of(self.file).or_else(|| of(""))?.as_ref()
    }
}

/// Texts that become an error as they are.
fn plain(kind: &str) -> Option<Maker> {
    Some(Maker { kind: kind.to_owned(), template: String::new(), parameters: Vec::new() })
}

impl<'ast> Visit<'ast> for Collect<'_> {
    /// A variant of the error with a text of its own.
    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        for attribute in variant.attrs.iter().filter(|attribute| attribute.path().is_ident("error")) {
            let arguments = attribute.parse_args_with(Punctuated::<Expr, Token![,]>::parse_terminated).unwrap();
            let mut arguments = arguments.iter();
            if let Some(Expr::Lit(literal)) = arguments.next()
                && let Lit::Str(text) = &literal.lit
                && text.value() != "{0}"
            {
                let text = filled(&text.value(), &mut arguments);
                self.within(plain(&variant.ident.to_string()), |this| this.add(&text));
            }
        }
    }
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        if !for_tests(&function.attrs) {
            self.within(None, |this| visit::visit_item_fn(this, function));
        }
    }
    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        let name = match &*call.func {
            Expr::Path(path) => path.path.segments.last().unwrap().ident.to_string(),
            _ => String::new(),
        };
        let broken = broken_rule(call);
        if !broken.is_empty() {
            self.within(plain("Usage"), |this| broken.iter().for_each(|text| this.add(text)));
        } else if let Some(what) = doubt(call) {
            self.add(&what);
        } else if is_remark(&call.func) {
            self.within(plain("note"), |this| visit::visit_expr_call(this, call));
        } else if let Some(kind) = variant(&call.func) {
            let about = ["Input", "Output", "Profile"].contains(&kind.as_str()) && call.args.len() == 2;
            let context = if about {
                let path = call.args.first().map_or(String::new(), placeholder);
                Some(Maker { kind, template: format!("{path}: WHY"), parameters: vec!["why".into()] })
            } else {
                plain(&kind)
            };
            self.within(context, |this| visit::visit_expr_call(this, call));
        } else if let Some(maker) = self.maker(&name).cloned() {
            for (index, argument) in call.args.iter().enumerate() {
                let parameters = maker.parameters.get(index).cloned().into_iter().collect();
                let context = Some(Maker { parameters, ..maker.clone() });
                self.within(context, |this| this.visit_expr(argument));
            }
        } else if name == "Err" && self.contexts.last().is_none_or(Option::is_none) {
            self.within(plain(""), |this| visit::visit_expr_call(this, call));
        } else {
            visit::visit_expr_call(self, call);
        }
    }
    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        self.visit_expr(&call.receiver);
        let outside = self.contexts.last().is_none_or(Option::is_none);
        let context = match method.as_str() {
            "map_err" | "ok_or" | "ok_or_else" if outside => plain(""),
            "push" if placeholder(&call.receiver) == "NOTES" => plain("note"),
            "note" | "detail" | "map" | "into" | "to_owned" | "unwrap_or_else" | "and_then" | "map_or" => {
                self.contexts.last().cloned().flatten()
            }
            _ if outside => None,
            // other calls have literals that are no messages
            _ => None,
        };
        self.within(context, |this| call.args.iter().for_each(|argument| this.visit_expr(argument)));
        // `"text".into()` is seen as the receiver
    }
    fn visit_macro(&mut self, makro: &'ast Macro) {
        if let Some(text) = formatted(makro) {
            self.add(&text);
        }
    }
    fn visit_expr_lit(&mut self, literal: &'ast syn::ExprLit) {
        if let Lit::Str(text) = &literal.lit {
            self.add(&text.value());
        }
    }
}
