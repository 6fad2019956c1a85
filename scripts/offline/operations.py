"""Operations of a back-projection kernel, counted in what clang makes of it.

The kernel is compiled to LLVM's intermediate representation, with optimisation. Of every work-item of a work-group, only
what decides about branches is computed: integers, from the item's number and the arguments. This says how often each basic
block is executed, and what a block contains can be counted. Two runs, with different numbers of projections, give the
operations of a projection without what is done once.
"""

import collections
import itertools
import re

KINDS = "fp", "conversions", "half_conversions", "texels", "bits", "constant_bytes", "local_bytes", "global_bytes"
TYPE = r"(?:<\d+ x [\w.]+>|[%\w.]+)(?: addrspace\(\d+\))?"
FLOAT_OPS = {"fadd", "fsub", "fmul", "fdiv", "fneg", "fcmp"}
CONVERSIONS = {"sitofp", "uitofp", "fptosi", "fptoui"}
INTEGER = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b, "lshr": lambda a, b: (a & 0xFFFFFFFF) >> b, "ashr": lambda a, b: a >> b,
    "udiv": lambda a, b: (a & 0xFFFFFFFF) // b, "urem": lambda a, b: (a & 0xFFFFFFFF) % b,
    "sdiv": lambda a, b: int(a / b), "srem": lambda a, b: a - b * int(a / b),
    "smin": min, "smax": max, "umin": lambda a, b: min(a & 0xFFFFFFFF, b & 0xFFFFFFFF),
    "umax": lambda a, b: max(a & 0xFFFFFFFF, b & 0xFFFFFFFF),
}
COMPARE = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "slt": lambda a, b: a < b, "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b, "sge": lambda a, b: a >= b,
}


class Unknown(Exception):
    """An instruction that this file does not know."""


def lanes(kind):
    """Values of a type."""
    found = re.match(r"<(\d+) x", kind)
    return int(found[1]) if found else 1


def size(kind):
    """Bytes of a type."""
    element = re.sub(r"<\d+ x (.*)>", r"\1", kind)
    return lanes(kind) * {"float": 4, "half": 2, "double": 8}.get(element, int(element[1:]) // 8 if element[0] == "i" else 8)


def cost(text):
    """What an instruction counts as: kinds with numbers."""
    found = collections.Counter()
    operation = text.split("=", 1)[1].split()[0] if re.match(r"\s*%\S+ =", text) else text.split()[0]
    if operation in ("tail", "call"):
        name = re.search(r"@([-\w.$]+)\(", text)
        kind = re.search(rf"call (?:[a-z_]+ )*({TYPE}) ", text)[1]
        name = name[1] if name else ""
        if re.search(r"fmuladd|\.fma\.|_Z3mad|_Z3fma", name):
            found["fp"] = lanes(kind)
        elif re.search(r"floor|ceil|trunc|rint", name):
            found["conversions"] = lanes(kind)
        elif "read_imagef" in name:
            found["texels"] = 1
        elif re.search(r"convert_(float|int)", name):
            found["conversions"] = lanes(kind)
        elif "vload_half" in name:
            found["half_conversions"] = lanes(kind)
            found.update(memory(name, 2 * lanes(kind)))
        elif "vstore_half" in name:
            width = re.search(r"Dv(\d+)_f", name)
            found["half_conversions"] = int(width[1]) if width else 1
            found.update(memory(name, 2 * found["half_conversions"]))
        elif "clamp" in name:
            found["fp"] = 2 * lanes(kind)
        elif not re.search(r"get_(local|group)_id|barrier|sampler_init|llvm\.|_Z3m(in|ax)|asm|shuffle", name + text):
            raise Unknown(text)
    elif operation in FLOAT_OPS:
        found["fp"] = lanes(re.search(rf"{operation} (?:[a-z]+ )*({TYPE})", text)[1])
    elif operation in CONVERSIONS:
        found["conversions"] = lanes(re.search(rf"{operation} ({TYPE})", text)[1])
    elif operation in ("fpext", "fptrunc"):
        found["half_conversions"] = lanes(re.search(rf"{operation} ({TYPE})", text)[1])
    elif operation == "bitcast" and re.search("bitcast float .* to i32", text):
        found["bits"] = 1
    elif operation in ("load", "store"):
        found.update(memory(text, size(re.search(rf"{operation} ({TYPE})", text)[1])))
    return found


def memory(text, size_of_value):
    """Bytes of an access, whose address space is in the instruction or in the name of the function."""
    space = re.search(r"(?:addrspace\(|PU3AS|PKU3AS)(\d)", text)
    name = {"0": None, "1": "global_bytes", "3": "local_bytes"}.get(space[1] if space else "0", "constant_bytes")
    return {name: size_of_value} if name else {}


class Function:
    """The kernel."""

    def __init__(self, listing):
        head, body = re.search(r"^define [^\n]*@backproject\((.*?)\)[^\n]*\{\n(.*?)^\}", listing, re.M | re.S).groups()
        self.arguments = re.findall(r"%(\w+)(?:,|$)", head)
        self.blocks, self.first, label = {}, None, "0"
        for line in body.splitlines():
            line = re.sub(r",? ![\w.]+(?: !\d+)?| ; preds.*|, !.*$", "", line)
            found = re.match(r"^([-\w.$]+):", line)
            if found:
                label = found[1]
            elif line.strip() and not line.strip().startswith(";"):
                if self.first is None:
                    self.first = label
                self.blocks.setdefault(label, []).append(line.strip())
        if self.first == "0":
            # an entry without a name takes the number after the arguments
            unnamed = sum(name.isdigit() for name in self.arguments)
            self.blocks[str(unnamed)] = self.blocks.pop("0")
            self.first = str(unnamed)
        self.defined = {re.match(r"%(\S+) =", line)[1]: line for lines in self.blocks.values() for line in lines
                        if re.match(r"%\S+ =", line)}
        self.needed = self.decisive()
        self.costs = {name: sum((cost(line) for line in lines), collections.Counter()) for name, lines in self.blocks.items()}
        self.code = {name: self.translate(name, lines) for name, lines in self.blocks.items()}

    def decisive(self):
        """Values on which a branch depends."""
        waiting = [name for lines in self.blocks.values() for name in re.findall(r"(?:br i1|switch \w+) %(\S+?),", lines[-1])]
        needed = set()
        while waiting:
            name = waiting.pop()
            if name not in needed and name in self.defined:
                needed.add(name)
                line = self.defined[name].split("=", 1)[1]
                if " load " not in f" {line.strip()}"[:7]:
                    waiting += re.findall(r"%([-\w.$]+)", line)
        return needed

    def value(self, text):
        """An operand as Python."""
        text = text.strip()
        if text.startswith("%"):
            return f"v[{text[1:]!r}]"
        if text.startswith("<"):
            return "[" + ", ".join(self.value(part.split()[-1]) for part in text.strip("<>").split(",")) + "]"
        known = {"true": "1", "false": "0", "undef": "0", "poison": "0", "zeroinitializer": "[0] * 16", "null": "0"}
        return known.get(text, text if re.fullmatch(r"-?\d+", text) else "0")

    def translate(self, name, lines):
        """A block as Python: sets values of `v`, and returns the next block."""
        code, phis = ["def block(v, before, number):"], []
        for line in lines[:-1]:
            found = re.match(r"%(\S+) = (.*)", line)
            if not found or found[1] not in self.needed:
                continue
            target, text = found.groups()
            if text.startswith("phi"):
                cases = re.findall(r"\[ (.+?), %([-\w.$]+) \]", text)
                table = ", ".join(f"{label!r}: lambda: {self.value(value)}" for value, label in cases)
                phis.append((target, f"{{{table}}}[before]()"))
            else:
                if phis:
                    code.append(f"    {', '.join(f'v[{t!r}]' for t, _ in phis)} = {', '.join(c for _, c in phis)}")
                    phis = []
                code.append(f"    v[{target!r}] = {self.expression(text)}")
        if phis:
            code.append(f"    {', '.join(f'v[{t!r}]' for t, _ in phis)} = {', '.join(c for _, c in phis)}")
        last = lines[-1]
        if last.startswith("br i1"):
            condition, yes, no = re.match(r"br i1 (\S+), label %([-\w.$]+), label %([-\w.$]+)", last).groups()
            code.append(f"    return {yes!r} if {self.value(condition)} else {no!r}")
        elif last.startswith("br label"):
            code.append(f"    return {re.match(r'br label %([^ ,]+)', last)[1]!r}")
        elif last.startswith("ret"):
            code.append("    return None")
        else:
            raise Unknown(last)
        space = {"integer": INTEGER, "compare": COMPARE, "each": each, "replaced": replaced}
        exec("\n".join(code), space)  # pylint: disable=exec-used
        return space["block"]

    def expression(self, text):
        """The value of an integer instruction as Python."""
        operation = text.split()[0]
        operands = text.split(" ", 1)[1]
        if operation in INTEGER:
            a, b = split(re.sub(r"^(?:nsw |nuw |exact )*", "", operands))
            return f"each(integer[{operation!r}], {self.value(a.split(' ', typed(a))[-1])}, {self.value(b)})"
        if operation == "icmp":
            kind, rest = operands.split(" ", 1)
            a, b = split(rest)
            unsigned = {"ult": "slt", "ule": "sle", "ugt": "sgt", "uge": "sge"}
            mask = " & 0xFFFFFFFFFFFFFFFF" if kind in unsigned else ""
            return (f"int(compare[{unsigned.get(kind, kind)!r}]({self.value(a.split()[-1])}{mask},"
                    f" {self.value(b)}{mask}))")
        if operation in ("zext", "sext", "trunc", "bitcast", "freeze"):
            return self.value(re.search(r"(%[-\w.$]+|-?\d+)(?: to|$)", operands)[1])
        if operation == "select":
            c, a, b = split(operands)
            return f"({self.value(a.split()[-1])} if {self.value(c.split()[-1])} else {self.value(b.split()[-1])})"
        if operation == "extractelement":
            a, b = split(operands)
            return f"{self.value(re.sub(r'^<[^>]*> ', '', a))}[{self.value(b.split()[-1])}]"
        if operation == "insertelement":
            a, b, c = split(operands)
            at = self.value(c.split()[-1])
            whole = self.value(re.sub(r"^<[^>]*> ", "", a))
            return f"replaced({whole}, {at}, {self.value(b.split()[-1])})"
        if operation == "shufflevector":
            a, b, mask = split(operands)
            order = [int(part.split()[-1]) if part.split()[-1].isdigit() else 0
                     for part in re.sub(r"^<[^>]*> ", "", mask).strip("<>").split(",")]
            if "zeroinitializer" in mask:
                order = [0] * lanes(mask)
            count = lanes(a)
            first, second = (self.value(re.sub(r"^<[^>]*> ", "", part)) for part in (a, b))
            picked = ", ".join(f"{first}[{i}]" if i < count else f"{second}[{i - count}]" for i in order)
            return f"[{picked}]"
        if operation in ("tail", "call"):
            name = re.search(r"@([-\w.$]+)\(", text)
            arguments = split(text[text.index("(", text.index("@")) + 1:text.rindex(")")]) if name else []
            if name and "get_local_id" in name[1]:
                return f"number[{arguments[0].split()[-1]}]"
            if name and "get_group_id" in name[1]:
                return f"(number[2] if {arguments[0].split()[-1]} == 0 else 0)"
            found = name and re.match(r"llvm\.([su]m(?:in|ax))\.|_Z3(min|max)ii", name[1])
            if found:
                which = found[1] or "s" + found[2]
                a, b = (self.value(argument.split()[-1]) for argument in arguments)
                return f"each(integer[{which!r}], {a}, {b})"
            if not name:
                return "0"
        if operation == "load":
            return "0"
        raise Unknown(text)

    def run(self, arguments, number, counts):
        """Counts how often blocks are executed by a work-item; `number` is its own in x and y, and its group's in x."""
        values = dict.fromkeys(self.arguments, 0) | arguments
        before, block = None, self.first
        while block:
            counts[block] += 1
            before, block = block, self.code[block](values, before, number)


def each(function, a, b):
    """A function of integers, for vectors of them, too."""
    if isinstance(a, list) or isinstance(b, list):
        a, b = (part if isinstance(part, list) else [part] * 4 for part in (a, b))
        return [function(x, y) for x, y in zip(a, b)]
    return function(a, b)


def replaced(vector, place, value):
    """A vector with another value at a place; not known ones are 0."""
    values = list(vector) if isinstance(vector, list) else [0] * 4
    values[place] = value
    return values


def typed(text):
    """1 if an operand has its type in front, which vectors' have with spaces."""
    return 1 if not text.startswith("<") else text[:text.index(">") + 1].count(" ") + 1


def split(text):
    """Operands, at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth += (sign in "<[({") - (sign in ">])}")
        if sign == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return parts + [text[start:].strip()]


def counted(listing, group, groups, slices, projections):
    """Operations of a projection, of all items of some work-groups: from `projections` to twice as many."""
    kernel = Function(listing)
    total = collections.Counter()
    for factor, sign in (1, -1), (2, 1):
        counts = collections.Counter()
        arguments = {"projections": factor * projections, "bins": 2048, "roi": [0, 0, 2048, 2048], "valid": slices,
                     "origin": [0, 0], "first": 0}
        for item in itertools.product(range(group[0]), range(group[1]), range(groups)):
            kernel.run(arguments, item, counts)
        for block, times in counts.items():
            for kind, number in kernel.costs[block].items():
                total[kind] += sign * times * number
    return {kind: total[kind] / projections for kind in KINDS}
