// Runs in the box: checks the types of a module's packages and looks for misuse that only types show.
//
// Prints one line for each finding: rule, path, first line, last line and message, separated by tabs. A package that
// cannot be found is taken as empty: the type checker then says nothing about what is used of it.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
)

type program struct {
	files    *token.FileSet
	module   string
	root     string
	standard types.Importer
	known    map[string]*types.Package
	busy     map[string]bool
	said     map[string]bool
	lacking  bool // a package was not found
}

var errMissing = errors.New("not installed")

func main() {
	fset := token.NewFileSet()
	root, _ := os.Getwd()
	build.Default.CgoEnabled = false
	p := &program{files: fset, root: root, module: readModule(), standard: importer.ForCompiler(fset, "source", nil),
		known: map[string]*types.Package{}, busy: map[string]bool{}, said: map[string]bool{}}
	if wanted := newerThanThis(); wanted != "" {
		fmt.Println("#error: its go.mod asks for Go " + wanted + ", and this is " + runtime.Version())
		return
	}
	folders := map[string]bool{}
	filepath.Walk(".", func(name string, info os.FileInfo, err error) error {
		if err != nil {
			return nil
		}
		base := info.Name()
		if info.IsDir() && name != "." && (base == "vendor" || base == "testdata" || base[0] == '.' || base[0] == '_') {
			return filepath.SkipDir
		}
		if info.IsDir() && name != "." {
			if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
				return filepath.SkipDir
			}
		}
		if strings.HasSuffix(name, ".go") {
			folders[filepath.Dir(name)] = true
		}
		return nil
	})
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		p.checkFolder(name)
	}
}

// newerThanThis gives the Go version that go.mod asks for where this toolchain's library is older: it lacks names.
func newerThanThis() string {
	text, _ := os.ReadFile("go.mod")
	wanted := regexp.MustCompile(`(?m)^go\s+1\.(\d{1,4})`).FindSubmatch(text)
	own := regexp.MustCompile(`go1\.(\d{1,4})`).FindStringSubmatch(runtime.Version())
	if wanted == nil || own == nil {
		return ""
	}
	a, _ := strconv.Atoi(string(wanted[1]))
	b, _ := strconv.Atoi(own[1])
	if a <= b {
		return ""
	}
	return "1." + string(wanted[1])
}

// lacksParts tells whether a type embeds something that is not there, and so may have any member.
func lacksParts(t types.Type, depth int) bool {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if t == nil || depth > 5 {
		return false
	}
	switch under := t.Underlying().(type) {
	case *types.Basic:
		return under.Kind() == types.Invalid
	case *types.Interface:
		for i := 0; i < under.NumEmbeddeds(); i++ {
			if lacksParts(under.EmbeddedType(i), depth+1) {
				return true
			}
		}
	case *types.Struct:
		for i := 0; i < under.NumFields(); i++ {
			if under.Field(i).Embedded() && lacksParts(under.Field(i).Type(), depth+1) {
				return true
			}
		}
	}
	return false
}

func readModule() string {
	text, _ := os.ReadFile("go.mod")
	found := regexp.MustCompile(`(?m)^module\s+"?([^\s"]+)`).FindSubmatch(text)
	if found == nil {
		return "\x00"
	}
	return string(found[1])
}

// Import finds a package of the module by its folder, one of the standard library by its source, and no other.
func (p *program) Import(name string) (*types.Package, error) {
	if found := p.known[name]; found != nil {
		return found, nil
	}
	if name == "unsafe" {
		return types.Unsafe, nil
	}
	if name == p.module || strings.HasPrefix(name, p.module+"/") {
		if p.busy[name] {
			return nil, errMissing
		}
		folder := "." + strings.TrimPrefix(name, p.module)
		files, _, _ := p.parseFolder(folder)
		if len(files) == 0 {
			return nil, errMissing
		}
		p.busy[name] = true
		found := p.checkFiles(name, files, true)
		p.busy[name] = false
		p.known[name] = found
		return found, nil
	}
	if strings.Contains(strings.Split(name, "/")[0], ".") || name == "C" {
		p.lacking = true
		return nil, errMissing
	}
	found, err := p.standard.Import(name)
	if err != nil {
		p.lacking = true
		return nil, errMissing
	}
	p.known[name] = found
	return found, nil
}

// parseFolder gives a folder's files: those of the package, its tests inside it, and its tests outside it.
func (p *program) parseFolder(folder string) (own, inside, outside []*ast.File) {
	entries, _ := os.ReadDir(folder)
	counts := map[string]int{}
	parsed := []*ast.File{}
	for _, entry := range entries {
		name := entry.Name()
		if entry.IsDir() || !strings.HasSuffix(name, ".go") {
			continue
		}
		if ok, _ := build.Default.MatchFile(folder, name); !ok {
			continue
		}
		file, err := parser.ParseFile(p.files, filepath.Join(folder, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil || file == nil {
			continue // broken syntax has a reviewer of its own
		}
		parsed = append(parsed, file)
		if !strings.HasSuffix(name, "_test.go") {
			counts[file.Name.Name]++
		}
	}
	main := ""
	for name, count := range counts {
		if count > counts[main] || (count == counts[main] && name < main) {
			main = name
		}
	}
	for _, file := range parsed {
		test := strings.HasSuffix(p.files.Position(file.Pos()).Filename, "_test.go")
		switch {
		case !test && file.Name.Name == main:
			own = append(own, file)
		case test && strings.HasSuffix(file.Name.Name, "_test"):
			outside = append(outside, file)
		case test:
			inside = append(inside, file)
		}
	}
	return
}

func (p *program) checkFolder(folder string) {
	own, inside, outside := p.parseFolder(folder)
	name := p.module
	if folder != "." {
		name = path.Join(p.module, filepath.ToSlash(folder))
	}
	if p.module == "\x00" {
		name = folder
	}
	if len(own)+len(inside) > 0 {
		p.checkFiles(name, append(own, inside...), false)
	}
	if len(outside) > 0 {
		p.checkFiles(name+"_test", outside, false)
	}
}

func (p *program) checkFiles(name string, files []*ast.File, quiet bool) *types.Package {
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{},
		Defs: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	cgo := false
	faults := []types.Error{}
	for _, file := range files {
		for _, spec := range file.Imports {
			cgo = cgo || spec.Path.Value == `"C"`
		}
	}
	config := types.Config{Importer: p, FakeImportC: true, Error: func(err error) {
		var found types.Error
		if quiet || cgo || !errors.As(err, &found) || strings.HasPrefix(found.Msg, "\t") {
			return
		}
		text := found.Msg
		if strings.Contains(text, "could not import") || strings.Contains(text, "requires go1.") {
			return
		}
		if strings.Contains(text, "missing method") && p.lacking {
			return
		}
		faults = append(faults, found)
	}}
	checked, _ := config.Check(name, p.files, files, info)
	open := map[token.Pos]bool{}
	for _, file := range files {
		ast.Inspect(file, func(node ast.Node) bool {
			if s, ok := node.(*ast.SelectorExpr); ok && len(faults) > 0 {
				if of := info.TypeOf(s.X); of != nil && lacksParts(of, 0) {
					open[s.Sel.Pos()] = true
				}
			}
			return true
		})
	}
	for _, fault := range faults {
		if !open[fault.Pos] {
			p.say("compile", fault.Pos, fault.Pos, fault.Msg)
		}
	}
	if !quiet {
		for _, file := range files {
			if !strings.HasSuffix(p.files.Position(file.Pos()).Filename, "_test.go") {
				p.findMisuse(file, info)
			}
		}
	}
	return checked
}

func (p *program) say(rule string, from, to token.Pos, text string) {
	at, end := p.files.Position(from), p.files.Position(to)
	name := filepath.ToSlash(at.Filename)
	if filepath.IsAbs(at.Filename) {
		if short, err := filepath.Rel(p.root, at.Filename); err == nil {
			name = filepath.ToSlash(short)
		}
	}
	if strings.HasPrefix(name, "..") {
		return
	}
	text = strings.Join(strings.Fields(text), " ")
	row := fmt.Sprintf("%s\t%s\t%d\t%d\t%s", rule, name, at.Line, end.Line, text)
	if !p.said[row] {
		p.said[row] = true
		fmt.Println(row)
	}
}

// ---- what only types show

var harmless = regexp.MustCompile(`^(?:fmt\.|\(\*?(?:strings\.Builder|bytes\.Buffer|hash\.|math/rand)|\(hash\.|\(io\.Closer\)|\(\*?text/tabwriter)|\.(?:Close|Flush|Shutdown|Write|WriteString|WriteByte|WriteRune|Sync|Print\w*|Fprint\w*)$`)

func (p *program) findMisuse(file *ast.File, info *types.Info) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				p.findIgnored(call, info, "ignored-error")
				p.findUnusedValue(call, info)
			}
		case *ast.AssignStmt:
			if len(n.Rhs) == 1 {
				if call, ok := n.Rhs[0].(*ast.CallExpr); ok && isBlank(n.Lhs[len(n.Lhs)-1]) {
					p.findIgnored(call, info, "blank-error")
				}
			}
		case *ast.CallExpr:
			p.findSwapped(n, info)
		case *ast.RangeStmt:
			p.findLostChange(n, info)
		case *ast.BlockStmt:
			p.findOverwritten(n.List, info)
			p.findNilMaps(n.List, info)
		case *ast.CaseClause:
			p.findOverwritten(n.Body, info)
		}
		return true
	})
}

func isBlank(expr ast.Expr) bool {
	name, ok := expr.(*ast.Ident)
	return ok && name.Name == "_"
}

func isError(t types.Type) bool {
	return t != nil && types.Identical(t, types.Universe.Lookup("error").Type())
}

func lastResult(call *ast.CallExpr, info *types.Info) types.Type {
	switch t := info.TypeOf(call).(type) {
	case nil:
		return nil
	case *types.Tuple:
		if t.Len() == 0 {
			return nil
		}
		return t.At(t.Len() - 1).Type()
	default:
		return t
	}
}

func callee(call *ast.CallExpr, info *types.Info) *types.Func {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		found, _ := info.Uses[f].(*types.Func)
		return found
	case *ast.SelectorExpr:
		found, _ := info.Uses[f.Sel].(*types.Func)
		return found
	}
	return nil
}

func (p *program) findIgnored(call *ast.CallExpr, info *types.Info, rule string) {
	function := callee(call, info)
	if function == nil || !isError(lastResult(call, info)) || harmless.MatchString(function.FullName()) {
		return
	}
	if rule == "ignored-error" && function.Pos().IsValid() && !filepath.IsAbs(p.files.Position(function.Pos()).Filename) {
		rule = "ignored-own-error"
	}
	p.say(rule, call.Pos(), call.End(), "the error of `"+function.Name()+"` is thrown away")
}

var pure = regexp.MustCompile(`^(?:strings\.(?:Replace|ReplaceAll|Trim\w*|To\w+|Title|Join|Split\w*|Repeat|Map|Fields|Contains\w*|Has\w+|Index\w*)|strconv\.(?:Itoa|Format\w+|Quote\w*)|path(?:/filepath)?\.(?:Join|Clean|Base|Dir|Ext)|\(time\.(?:Time|Duration)\)\.\w+|errors\.(?:New|Is|Unwrap)|fmt\.(?:Sprint\w*|Errorf)|\(\*?net/url\.URL\)\.String|\(\*net/http\.Request\)\.With\w+|context\.With\w+|sort\.(?:Reverse|SearchInts)|bytes\.(?:Replace|Trim\w*|To\w+))$`)

func (p *program) findUnusedValue(call *ast.CallExpr, info *types.Info) {
	if function := callee(call, info); function != nil && pure.MatchString(function.FullName()) {
		p.say("unused-value", call.Pos(), call.End(), "`"+function.Name()+"` changes nothing: its result is thrown away")
	}
}

// nameOf gives the last name of a plain argument, in lower case.
func nameOf(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return strings.ToLower(e.Name)
	case *ast.SelectorExpr:
		return strings.ToLower(e.Sel.Name)
	}
	return ""
}

func (p *program) findSwapped(call *ast.CallExpr, info *types.Info) {
	function := callee(call, info)
	if function == nil {
		return
	}
	signature, ok := function.Type().(*types.Signature)
	if !ok || signature.Variadic() && len(call.Args) < signature.Params().Len() || len(call.Args) > signature.Params().Len() {
		return
	}
	params := signature.Params()
	for i := range call.Args {
		for j := i + 1; j < len(call.Args); j++ {
			a, b := nameOf(call.Args[i]), nameOf(call.Args[j])
			x, y := strings.ToLower(params.At(i).Name()), strings.ToLower(params.At(j).Name())
			if len(a) > 1 && len(b) > 1 && a == y && b == x && a != b && types.Identical(params.At(i).Type(), params.At(j).Type()) {
				p.say("swapped-arguments", call.Pos(), call.End(), fmt.Sprintf("`%s` takes (%s, %s) and is given (%s, %s)", function.Name(), params.At(i).Name(), params.At(j).Name(), types.ExprString(call.Args[i]), types.ExprString(call.Args[j])))
			}
		}
	}
}

// findLostChange finds a loop over structs that sets a field of its copy and then does nothing with the copy.
func (p *program) findLostChange(loop *ast.RangeStmt, info *types.Info) {
	value, ok := loop.Value.(*ast.Ident)
	if !ok || value.Name == "_" || loop.Tok != token.DEFINE {
		return
	}
	object := info.Defs[value]
	if object == nil {
		return
	}
	if _, ok := object.Type().Underlying().(*types.Struct); !ok {
		return
	}
	var set ast.Node
	uses, writes := 0, 0
	ast.Inspect(loop.Body, func(node ast.Node) bool {
		if assign, ok := node.(*ast.AssignStmt); ok {
			for _, left := range assign.Lhs {
				if field, ok := left.(*ast.SelectorExpr); ok {
					if name, ok := field.X.(*ast.Ident); ok && info.Uses[name] == object {
						set, writes = assign, writes+1
					}
				}
			}
		}
		if name, ok := node.(*ast.Ident); ok && info.Uses[name] == object {
			uses++
			if set != nil && name.Pos() > set.End() {
				uses += 100
			}
		}
		return true
	})
	if set != nil && uses < 100 && writes == 1 {
		p.say("lost-change", set.Pos(), set.End(), "`"+value.Name+"` is a copy of the element: this change is lost")
	}
}

func errorTarget(stmt ast.Stmt, info *types.Info) (*ast.Ident, types.Object) {
	assign, ok := stmt.(*ast.AssignStmt)
	if !ok || len(assign.Lhs) == 0 || len(assign.Rhs) != 1 {
		return nil, nil
	}
	if _, ok := assign.Rhs[0].(*ast.CallExpr); !ok {
		return nil, nil
	}
	name, ok := assign.Lhs[len(assign.Lhs)-1].(*ast.Ident)
	if !ok || name.Name == "_" {
		return nil, nil
	}
	object := info.Defs[name]
	if object == nil {
		object = info.Uses[name]
	}
	if object == nil || !isError(object.Type()) {
		return nil, nil
	}
	return name, object
}

func mentions(node ast.Node, object types.Object, info *types.Info) bool {
	found := false
	ast.Inspect(node, func(inner ast.Node) bool {
		if name, ok := inner.(*ast.Ident); ok && (info.Uses[name] == object) {
			found = true
		}
		return !found
	})
	return found
}

// findOverwritten finds an error that the next assignment replaces before anything has looked at it.
func (p *program) findOverwritten(list []ast.Stmt, info *types.Info) {
	for i, stmt := range list {
		name, object := errorTarget(stmt, info)
		if name == nil {
			continue
		}
		for _, next := range list[i+1:] {
			if _, again := errorTarget(next, info); again == object {
				if !mentions(next.(*ast.AssignStmt).Rhs[0], object, info) {
					p.say("overwritten-error", stmt.Pos(), stmt.End(), "nothing looks at `"+name.Name+"` before it is assigned again")
				}
				break
			}
			if mentions(next, object, info) || leaves(next) {
				break
			}
		}
	}
}

func leaves(stmt ast.Stmt) bool {
	switch stmt.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt, *ast.DeferStmt, *ast.GoStmt, *ast.LabeledStmt:
		return true
	}
	found := false
	ast.Inspect(stmt, func(node ast.Node) bool {
		switch node.(type) {
		case *ast.FuncLit, *ast.ReturnStmt, *ast.BranchStmt:
			found = true
		}
		return !found
	})
	return found
}

// findNilMaps finds `var m map[K]V` with an element that is set before the map is made.
func (p *program) findNilMaps(list []ast.Stmt, info *types.Info) {
	for i, stmt := range list {
		decl, ok := stmt.(*ast.DeclStmt)
		if !ok {
			continue
		}
		group, ok := decl.Decl.(*ast.GenDecl)
		if !ok || len(group.Specs) != 1 {
			continue
		}
		spec, ok := group.Specs[0].(*ast.ValueSpec)
		if !ok || len(spec.Values) > 0 || len(spec.Names) != 1 {
			continue
		}
		object := info.Defs[spec.Names[0]]
		if object == nil {
			continue
		}
		if _, ok := object.Type().Underlying().(*types.Map); !ok {
			continue
		}
		for _, next := range list[i+1:] {
			if !mentions(next, object, info) {
				continue
			}
			made, set := false, ast.Node(nil)
			ast.Inspect(next, func(node ast.Node) bool {
				switch n := node.(type) {
				case *ast.UnaryExpr:
					made = made || n.Op == token.AND && mentions(n, object, info)
				case *ast.AssignStmt:
					for _, left := range n.Lhs {
						if name, ok := left.(*ast.Ident); ok && info.Uses[name] == object {
							made = true
						}
						if index, ok := left.(*ast.IndexExpr); ok && set == nil {
							if name, ok := index.X.(*ast.Ident); ok && info.Uses[name] == object {
								set = n
							}
						}
					}
				}
				return true
			})
			if set != nil && !made {
				p.say("nil-map", set.Pos(), set.End(), "`"+spec.Names[0].Name+"` is nil here: assigning to it panics")
			}
			break
		}
	}
}
