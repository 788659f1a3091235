// Runs in the box: compiles Java sources without writing anything, and looks for misuse that only types show.
//
// Usage: java JavaTypes.java LIST   The list names the source files, one a line. Annotation processors do not run.
// Prints one line for each finding: rule, path, first line, last line and message, separated by tabs. The rule of an
// error or warning of the compiler is its own key.

import com.sun.source.tree.*;
import com.sun.source.util.*;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import java.util.stream.*;
import javax.lang.model.element.*;
import javax.lang.model.type.*;
import javax.lang.model.util.*;
import javax.tools.*;

public class JavaTypes {
    private static final Set<String> OPENERS = Set.of(
            "java.io.FileInputStream", "java.io.FileOutputStream", "java.io.FileReader", "java.io.FileWriter",
            "java.io.RandomAccessFile", "java.util.zip.ZipFile", "java.util.jar.JarFile", "java.net.Socket",
            "java.net.ServerSocket");
    private static final Set<String> OPENING_METHODS = Set.of(
            "newInputStream", "newOutputStream", "newBufferedReader", "newBufferedWriter", "getConnection",
            "prepareStatement", "createStatement", "executeQuery", "lines", "newDirectoryStream", "openStream");
    private static final Set<String> VALUES = Set.of(
            "java.lang.String", "java.math.BigDecimal", "java.math.BigInteger", "java.time.LocalDate",
            "java.time.LocalDateTime", "java.time.Instant", "java.time.Duration", "java.util.Optional");
    private static final Set<String> LOOK_UPS = Set.of("contains", "containsKey", "get", "remove", "indexOf", "containsValue");
    private static final Set<String> BOXES = Set.of(
            "java.lang.Integer", "java.lang.Long", "java.lang.Short", "java.lang.Double", "java.lang.Float");
    private static final Pattern PLACEHOLDER = Pattern.compile("%(?:(\\d+)\\$)?[-#+ 0,(<]*\\d*(?:\\.\\d+)?[tT]?[a-zA-Z%]");
    private static final Path ROOT = Path.of("").toAbsolutePath();
    private static final Set<String> SAID = new HashSet<>();

    public static void main(String[] arguments) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> heard = new DiagnosticCollector<>();
        StandardJavaFileManager manager = compiler.getStandardFileManager(heard, Locale.ROOT, null);
        List<String> paths = Files.readAllLines(Path.of(arguments[0]));
        List<String> options = List.of("-proc:none", "-Xlint:all,-serial,-rawtypes,-unchecked,-deprecation", "-Xmaxerrs", "5000",
                "-Xmaxwarns", "5000", "-XDshould-stop.ifError=FLOW", "-encoding", "UTF-8");
        JavacTask task = (JavacTask) compiler.getTask(null, manager, heard, options, null, manager.getJavaFileObjectsFromStrings(paths));
        List<CompilationUnitTree> units = new ArrayList<>();
        task.parse().forEach(units::add);
        try {
            task.analyze();
        } catch (RuntimeException | AssertionError error) {
            System.err.println("the compiler failed: " + error);
        }
        Trees trees = Trees.instance(task);
        Missing missing = new Missing(trees, task.getTypes(), units);
        for (Diagnostic<? extends JavaFileObject> found : heard.getDiagnostics()) {
            if (found.getSource() != null && found.getLineNumber() > 0 && !missing.mayExplain(found)) {
                say(found.getCode(), found.getSource(), found.getLineNumber(), found.getLineNumber(), found.getMessage(Locale.ROOT));
            }
        }
        for (CompilationUnitTree unit : units) {
            try {
                new Misuse(unit, trees, task.getTypes(), task.getElements()).scan(unit, null);
            } catch (RuntimeException error) {
                System.err.println("not read: " + unit.getSourceFile().getName() + ": " + error);
            }
        }
    }

    static void say(String rule, JavaFileObject source, long line, long end, String text) {
        String path = ROOT.relativize(Path.of(source.toUri()).toAbsolutePath()).toString();
        String row = String.join("\t", rule, path, "" + line, "" + end, text.replaceAll("\\s+", " "));
        if (SAID.add(row)) {
            System.out.println(row);
        }
    }

    /** Classes that are missing, and which errors they may have caused: those that depend on a type which is not known. */
    record Missing(Trees trees, Types types, List<CompilationUnitTree> units) {
        /** Whether an error may be wrong. A name that is not found depends on what it is looked up in, another error also on the code around it. */
        boolean mayExplain(Diagnostic<? extends JavaFileObject> error) {
            String file = error.getSource().getName();
            CompilationUnitTree unit = units.stream().filter(one -> one.getSourceFile().getName().equals(file)).findFirst().orElse(null);
            if (unit == null) {
                return false;
            }
            if (error.getCode().endsWith("duplicate.class")) { // two builds in one tree may both have the class
                return units.stream().filter(other -> Path.of(other.getSourceFile().getName()).endsWith(Path.of(file).getFileName())
                        && Objects.toString(other.getPackageName()).equals(Objects.toString(unit.getPackageName()))).count() > 1;
            }
            TreePath place = findPlace(unit, error);
            TypeMirror type = trees.getTypeMirror(place);
            // a value of a wrong type has an error type that keeps the value's own
            TypeMirror own = isError(type) ? trees.getOriginalType((ErrorType) type) : type;
            boolean isFound = !isError(type) || !Set.of(TypeKind.ERROR, TypeKind.NONE, TypeKind.EXECUTABLE).contains(own.getKind());
            // a class of an unchanged test beside this file, which is not compiled
            boolean isLeftOut = !isFound && place.getLeaf() instanceof IdentifierTree name
                    && Files.exists(Path.of(error.getSource().toUri()).resolveSibling(name + ".java"));
            return isLeftOut || isLookedUpInUnknown(place, false)
                    || isFound && (own != null && listParents(own).anyMatch(Missing::isUnknown) || holdsUnknown(place, null) || isUsedByUnknown(place));
        }

        /** The smallest tree at a position, by which the compiler names an operator, the bracket of a call or the name of a variable. */
        TreePath findPlace(CompilationUnitTree unit, Diagnostic<? extends JavaFileObject> error) {
            TreePath[] smallest = {new TreePath(unit)};
            SourcePositions places = trees.getSourcePositions();
            long position = error.getPosition(), added = error.getEndPosition() > position ? 0 : 1;
            new TreePathScanner<Void, Void>() {
                @Override
                public Void scan(Tree tree, Void none) {
                    long start = tree == null ? -1 : places.getStartPosition(unit, tree);
                    // a `super()` that the compiler adds has no end, nor has an error in it
                    if (start < 0 || position < start || position >= Math.max(start + added, places.getEndPosition(unit, tree))) {
                        return null;
                    }
                    smallest[0] = new TreePath(getCurrentPath(), tree);
                    return super.scan(tree, none);
                }
            }.scan(smallest[0], null);
            return smallest[0];
        }

        static boolean isFunction(Tree tree) {
            return tree instanceof LambdaExpressionTree || tree instanceof MemberReferenceTree;
        }

        static boolean isError(TypeMirror type) {
            return type != null && type.getKind() == TypeKind.ERROR;
        }

        static boolean isUnknown(TypeMirror type) {
            Stream<? extends TypeMirror> parts = type instanceof ArrayType array ? Stream.of(array.getComponentType())
                    : type instanceof DeclaredType declared ? declared.getTypeArguments().stream()
                    : type instanceof WildcardType wild ? Stream.of(wild.getExtendsBound(), wild.getSuperBound()).filter(Objects::nonNull)
                    : type instanceof ExecutableType method
                            ? Stream.of(method.getParameterTypes(), method.getThrownTypes(), List.of(method.getReturnType())).flatMap(List::stream)
                    : Stream.of();
            return isError(type) || parts.anyMatch(Missing::isUnknown);
        }

        TypeMirror typeAt(TreePath above, Tree tree) {
            TypeMirror type = trees.getTypeMirror(new TreePath(above, tree));
            return type == null ? types.getNoType(TypeKind.NONE) : type;
        }

        /** A type with all that it inherits from, or a method's with all that it throws. */
        Stream<TypeMirror> listParents(TypeMirror type) {
            Stream<? extends TypeMirror> above = type instanceof ExecutableType method ? method.getThrownTypes().stream()
                    // unlike `directSupertypes`, an element knows the interfaces that are missing
                    : isError(type) ? Stream.of()
                    : types.asElement(type) instanceof TypeElement element
                            ? Stream.concat(Stream.of(element.getSuperclass()), element.getInterfaces().stream())
                    : type instanceof TypeVariable variable ? Stream.of(variable.getUpperBound()) : Stream.of();
            return Stream.concat(Stream.of(type), above.flatMap(this::listParents));
        }

        /** Whether a class may have members that are not seen: it is missing itself, or a processor makes them for an annotation that is missing. */
        boolean isOpen(TypeMirror type) {
            TreePath path = types.asElement(type) instanceof TypeElement element ? trees.getPath(element) : null;
            return isError(type) || path != null && path.getLeaf() instanceof ClassTree tree && tree.getModifiers().getAnnotations().stream()
                    .anyMatch(annotation -> isUnknown(typeAt(new TreePath(path, annotation), annotation.getAnnotationType())));
        }

        Stream<ExecutableElement> listMethods(TypeMirror type) {
            Element element = types.asElement(type);
            return element == null ? Stream.of() : element.getEnclosedElements().stream()
                    .filter(ExecutableElement.class::isInstance).map(ExecutableElement.class::cast);
        }

        /**
         * Whether a name is looked up in an open class, or among methods whose parameters, or what is given for them, are
         * unknown. `mustBeThere`: also where no method of the name is known at all.
         */
        boolean isLookedUpInUnknown(TreePath place, boolean mustBeThere) {
            Tree tree = place.getLeaf(), above = place.getParentPath() == null ? null : place.getParentPath().getLeaf();
            if (above instanceof MethodInvocationTree call && call.getMethodSelect() == tree) {
                return isLookedUpInUnknown(place.getParentPath(), mustBeThere);
            }
            Tree named = tree instanceof MethodInvocationTree call ? call.getMethodSelect() : tree;
            String name = named.toString();
            List<TypeMirror> owners = new ArrayList<>();
            if (named instanceof NewClassTree made) {
                name = "<init>";
                owners.add(typeAt(place, made.getIdentifier()));
            } else if (named instanceof MemberReferenceTree reference) {
                name = reference.getName().toString();
                listParents(typeAt(place, reference.getQualifierExpression())).forEach(owners::add);
            } else if (named instanceof MemberSelectTree select) {
                name = select.getIdentifier().toString();
                listParents(typeAt(new TreePath(place, named), select.getExpression())).forEach(owners::add);
            } else if (named instanceof IdentifierTree) {
                for (TreePath path = place; path.getParentPath() != null; path = path.getParentPath()) {
                    if (path.getLeaf() instanceof ClassTree around) {
                        listParents(typeAt(path.getParentPath(), around)).forEach(owners::add);
                    }
                }
            }
            String wanted = Set.of("new", "this", "super").contains(name) ? "<init>" : name;
            List<ExecutableElement> methods = owners.stream().flatMap(this::listMethods)
                    .filter(method -> method.getSimpleName().contentEquals(wanted)).toList();
            List<? extends ExpressionTree> given = tree instanceof MethodInvocationTree call ? call.getArguments()
                    : tree instanceof NewClassTree made ? made.getArguments() : List.of();
            boolean isGivenUnknown = named instanceof MemberSelectTree && holdsUnknown(new TreePath(place, named), named)
                    || given.stream().anyMatch(value -> isFunction(value) ? isLookedUpInUnknown(new TreePath(place, value), false)
                            : listParents(typeAt(place, value)).anyMatch(Missing::isUnknown));
            boolean isNowhere = methods.isEmpty() && !(trees.getElement(place) instanceof ExecutableElement);
            return mustBeThere && isNowhere || owners.stream().anyMatch(this::isOpen)
                    || methods.stream().anyMatch(method -> tree instanceof MemberReferenceTree ? isUnknown(method.asType())
                            : mayBeMeant(method, given.size(), isGivenUnknown));
        }

        /** Whether a method fits by the number of its arguments, and something about these is unknown. */
        static boolean mayBeMeant(ExecutableElement method, int given, boolean isGivenUnknown) {
            boolean fits = method.isVarArgs() || method.getParameters().size() == given;
            return fits && (isGivenUnknown || method.getParameters().stream().anyMatch(parameter -> isUnknown(parameter.asType())));
        }

        /** Whether a part of a tree is unknown, other than the one that the error is in. */
        boolean holdsUnknown(TreePath root, Tree faulty) {
            boolean[] unknown = {false};
            new TreePathScanner<Void, Void>() {
                @Override
                public Void scan(Tree tree, Void none) {
                    boolean isOwn = getCurrentPath() == root;
                    // what a handler catches, any call before it may throw
                    boolean isApart = isOwn && !(root.getLeaf() instanceof TryTree) && (tree instanceof StatementTree || tree instanceof MethodTree)
                            || faulty != null && (tree == faulty || isOwn && root.getLeaf() instanceof MethodInvocationTree call && tree == call.getMethodSelect());
                    if (tree == null || unknown[0] || isApart) {
                        return null;
                    }
                    TypeMirror type = typeAt(getCurrentPath(), tree);
                    unknown[0] = isUnknown(type) || faulty == null && listParents(type).anyMatch(Missing::isUnknown);
                    return super.scan(tree, none);
                }
            }.scan(root, null);
            return unknown[0];
        }

        /** Whether the statement or declaration around a place has another part that is unknown; for a statement in a lambda also what takes the lambda. */
        boolean isUsedByUnknown(TreePath place) {
            boolean isDone = false;
            for (TreePath path = place, above = place.getParentPath(); above != null; path = above, above = above.getParentPath()) {
                Tree tree = path.getLeaf(), outer = above.getLeaf();
                if (tree instanceof MethodTree || tree instanceof ClassTree) {
                    return isInheritedFromUnknown(path);
                }
                if (outer instanceof ClassTree || outer instanceof MethodTree method && method.getBody() == tree) {
                    return false;
                }
                isDone = (isDone || tree instanceof StatementTree) && !(tree instanceof LambdaExpressionTree);
                boolean isLookUp = outer instanceof MemberReferenceTree || outer instanceof MethodInvocationTree || outer instanceof NewClassTree;
                if (!isDone && (isLookUp && isLookedUpInUnknown(above, true) || holdsUnknown(above, tree))) {
                    return true;
                }
            }
            return false;
        }

        /** Whether a method, or one that a class must have, may be inherited from something unknown or override it. */
        boolean isInheritedFromUnknown(TreePath member) {
            Element element = trees.getElement(member);
            boolean isMethod = element instanceof ExecutableElement;
            if (element == null) {
                return false;
            }
            List<TypeMirror> parents = listParents((isMethod ? element.getEnclosingElement() : element).asType()).toList();
            List<ExecutableElement> methods = parents.stream().flatMap(this::listMethods).toList();
            // the names that the error can be about: the method's own, or those of what the class must have
            Set<Name> names = methods.stream().filter(method -> isMethod ? method == element : method.getModifiers().contains(Modifier.ABSTRACT))
                    .map(Element::getSimpleName).collect(Collectors.toSet());
            return parents.stream().skip(isMethod ? 1 : 0).anyMatch(this::isOpen)
                    || methods.stream().anyMatch(method -> isUnknown(method.asType()) && names.contains(method.getSimpleName()));
        }
    }

    static class Misuse extends TreePathScanner<Void, Void> {
        final CompilationUnitTree unit;
        final Trees trees;
        final Types types;
        final Elements elements;

        Misuse(CompilationUnitTree unit, Trees trees, Types types, Elements elements) {
            this.unit = unit;
            this.trees = trees;
            this.types = types;
            this.elements = elements;
        }

        void report(String rule, Tree tree, String text) {
            LineMap lines = unit.getLineMap();
            SourcePositions places = trees.getSourcePositions();
            long start = places.getStartPosition(unit, tree), end = places.getEndPosition(unit, tree);
            if (start >= 0) {
                long line = lines.getLineNumber(start);
                say(rule, unit.getSourceFile(), line, end < 0 ? line : lines.getLineNumber(end), text);
            }
        }

        TypeMirror typeOf(Tree tree) {
            TypeMirror found = trees.getTypeMirror(new TreePath(getCurrentPath(), tree));
            return found == null || found.getKind() == TypeKind.ERROR ? null : found;
        }

        String nameOf(TypeMirror type) {
            return type instanceof DeclaredType ? types.erasure(type).toString() : "";
        }

        ExecutableElement methodOf(Tree call) {
            return trees.getElement(new TreePath(getCurrentPath(), call)) instanceof ExecutableElement method ? method : null;
        }

        static ExpressionTree bare(ExpressionTree tree) {
            return tree instanceof ParenthesizedTree wrapped ? bare(wrapped.getExpression()) : tree;
        }

        @Override
        public Void visitBinary(BinaryTree tree, Void nothing) {
            if (tree.getKind() == Tree.Kind.EQUAL_TO || tree.getKind() == Tree.Kind.NOT_EQUAL_TO) {
                String left = nameOf(typeOf(tree.getLeftOperand())), right = nameOf(typeOf(tree.getRightOperand()));
                boolean strings = left.equals("java.lang.String") && right.equals(left);
                boolean boxes = BOXES.contains(left) && right.equals(left);
                if ((strings || boxes) && !isOwnIdentity(tree)) {
                    report(strings ? "string-identity" : "box-identity", tree, "`" + tree.getKind().name().replace("EQUAL_TO", "==").replace("NOT_==", "!=") + "` compares which objects these are, not what they hold");
                }
            }
            return super.visitBinary(tree, nothing);
        }

        /** `a == b || a.equals(b)` only saves time, and constants of a class may stand for states. */
        boolean isOwnIdentity(BinaryTree tree) {
            for (ExpressionTree side : List.of(tree.getLeftOperand(), tree.getRightOperand())) {
                Element named = trees.getElement(new TreePath(getCurrentPath(), side));
                boolean constant = named instanceof VariableElement field && field.getKind() == ElementKind.FIELD
                        && field.getModifiers().containsAll(Set.of(Modifier.STATIC, Modifier.FINAL)) && field.getConstantValue() == null;
                if (constant) {
                    return true;
                }
            }
            String left = tree.getLeftOperand().toString(), right = tree.getRightOperand().toString();
            List<String> same = List.of(left + ".equals(" + right + ")", right + ".equals(" + left + ")", "equals(" + left + ", " + right + ")",
                    "equals(" + right + ", " + left + ")", left + ".compareTo(" + right + ")", right + ".compareTo(" + left + ")");
            for (TreePath path = getCurrentPath(); path != null && !(path.getLeaf() instanceof ClassTree); path = path.getParentPath()) {
                if (path.getLeaf() instanceof StatementTree || path.getLeaf() instanceof MethodTree) {
                    String text = path.getLeaf() instanceof IfTree test ? test.getCondition().toString() : path.getLeaf() instanceof BlockTree ? "" : path.getLeaf().toString();
                    if (same.stream().anyMatch(text::contains)) {
                        return true;
                    }
                }
                if (path.getLeaf() instanceof MethodTree method) {
                    return method.getName().contentEquals("equals");
                }
            }
            return false;
        }

        @Override
        public Void visitAssignment(AssignmentTree tree, Void nothing) {
            Element left = trees.getElement(new TreePath(getCurrentPath(), tree.getVariable()));
            Element right = trees.getElement(new TreePath(getCurrentPath(), bare(tree.getExpression())));
            boolean plain = isName(tree.getVariable()) && isName(bare(tree.getExpression()));
            if (left != null && left == right && plain) {
                report("self-assignment", tree, "`" + tree + "` assigns the variable to itself");
            }
            return super.visitAssignment(tree, nothing);
        }

        static boolean isName(ExpressionTree tree) {
            return tree instanceof IdentifierTree || tree instanceof MemberSelectTree field && field.getExpression().toString().equals("this");
        }

        @Override
        public Void visitExpressionStatement(ExpressionStatementTree tree, Void nothing) {
            ExpressionTree value = tree.getExpression();
            if (value instanceof MethodInvocationTree call && call.getMethodSelect() instanceof MemberSelectTree select) {
                String owner = nameOf(typeOfNested(call, select.getExpression())), result = nameOf(typeOf(value));
                String name = select.getIdentifier().toString();
                if (VALUES.contains(owner) && result.equals(owner) && !name.equals("intern") && !name.matches("or\\w*|get|if\\w*|map|flatMap|filter")) {
                    report("unused-value", tree, "`" + name + "` changes nothing: its result is thrown away");
                }
                if (name.equals("run") && owner.equals("java.lang.Thread") && call.getArguments().isEmpty() && !select.getExpression().toString().equals("super")) {
                    report("thread-run", tree, "`run` works in this thread: `start` makes a new one");
                }
            }
            if (value instanceof NewClassTree made && isSubtype(typeOf(made), "java.lang.Throwable")) {
                report("unthrown", tree, "the exception is made and not thrown");
            }
            return super.visitExpressionStatement(tree, nothing);
        }

        TypeMirror typeOfNested(Tree outer, Tree inner) {
            TypeMirror found = trees.getTypeMirror(new TreePath(new TreePath(getCurrentPath(), outer), inner));
            return found == null || found.getKind() == TypeKind.ERROR ? null : found;
        }

        boolean isSubtype(TypeMirror type, String name) {
            TypeElement parent = elements.getTypeElement(name);
            return type instanceof DeclaredType && parent != null && types.isSubtype(types.erasure(type), types.erasure(parent.asType()));
        }

        @Override
        public Void visitMethodInvocation(MethodInvocationTree tree, Void nothing) {
            ExecutableElement method = methodOf(tree);
            if (method != null) {
                findSwapped(tree, method.getSimpleName().toString(), tree.getArguments(), method);
                findFormat(tree, method);
                findForeignKey(tree, method);
            }
            return super.visitMethodInvocation(tree, nothing);
        }

        @Override
        public Void visitNewClass(NewClassTree tree, Void nothing) {
            ExecutableElement method = methodOf(tree);
            if (method != null) {
                findSwapped(tree, tree.getIdentifier().toString(), tree.getArguments(), method);
            }
            return super.visitNewClass(tree, nothing);
        }

        static String lastName(ExpressionTree tree) {
            String text = tree instanceof IdentifierTree name ? name.getName().toString() : tree instanceof MemberSelectTree field ? field.getIdentifier().toString() : "";
            return text.toLowerCase(Locale.ROOT);
        }

        void findSwapped(Tree call, String name, List<? extends ExpressionTree> given, ExecutableElement method) {
            List<? extends VariableElement> wanted = method.getParameters();
            if (trees.getTree(method) == null || wanted.size() != given.size()) {
                return;
            }
            for (int i = 0; i < given.size(); i++) {
                for (int j = i + 1; j < given.size(); j++) {
                    String a = lastName(given.get(i)), b = lastName(given.get(j));
                    String x = wanted.get(i).getSimpleName().toString().toLowerCase(Locale.ROOT), y = wanted.get(j).getSimpleName().toString().toLowerCase(Locale.ROOT);
                    if (a.length() > 1 && b.length() > 1 && a.equals(y) && b.equals(x) && !a.equals(b)) {
                        report("swapped-arguments", call, "`" + name + "` takes (" + wanted.get(i) + ", " + wanted.get(j) + ") and is given (" + given.get(i) + ", " + given.get(j) + ")");
                    }
                }
            }
        }

        void findFormat(MethodInvocationTree tree, ExecutableElement method) {
            List<? extends ExpressionTree> given = tree.getArguments();
            String name = method.getSimpleName().toString(), owner = ((TypeElement) method.getEnclosingElement()).getQualifiedName().toString();
            boolean formats = (name.equals("format") || name.equals("printf")) && owner.matches("java\\.lang\\.String|java\\.io\\.Print(Stream|Writer)|java\\.util\\.Formatter");
            if (!formats || given.isEmpty() || !(bare(given.get(0)) instanceof LiteralTree text) || !(text.getValue() instanceof String form)) {
                return;
            }
            if (given.size() == 2 && typeOf(given.get(1)) instanceof ArrayType) {
                return;
            }
            int plain = 0, most = 0;
            for (Matcher match = PLACEHOLDER.matcher(form); match.find();) {
                String hit = match.group();
                if (hit.endsWith("%") || hit.endsWith("n") || hit.contains("<")) {
                    continue;
                }
                most = Math.max(most, match.group(1) != null ? Integer.parseInt(match.group(1)) : ++plain);
            }
            if (most != given.size() - 1) {
                report("format-arguments", tree, "the format asks for " + most + " values and is given " + (given.size() - 1));
            }
        }

        void findForeignKey(MethodInvocationTree tree, ExecutableElement method) {
            if (tree.getArguments().size() != 1 || !(tree.getMethodSelect() instanceof MemberSelectTree select)) {
                return;
            }
            String name = method.getSimpleName().toString();
            TypeMirror owner = typeOfNested(tree, select.getExpression()), given = typeOf(tree.getArguments().get(0));
            if (owner == null || given == null || !(owner instanceof DeclaredType declared) || !(given instanceof DeclaredType)) {
                return;
            }
            TypeMirror wanted = null;
            if (name.equals("equals") && method.getParameters().get(0).asType().toString().equals("java.lang.Object")) {
                wanted = owner;
            } else if (LOOK_UPS.contains(name) && !declared.getTypeArguments().isEmpty() && !method.getParameters().isEmpty()
                    && method.getParameters().get(0).asType().toString().equals("java.lang.Object")
                    && (isSubtype(owner, "java.util.Map") || isSubtype(owner, "java.util.Collection"))) {
                wanted = declared.getTypeArguments().get(name.equals("containsValue") ? declared.getTypeArguments().size() - 1 : 0);
            }
            if (wanted instanceof DeclaredType && isExact(wanted) && isExact(given) && !types.isSameType(types.erasure(wanted), types.erasure(given))) {
                report("never-equal", tree, "a " + given + " never equals a " + wanted);
            }
        }

        /** A final class or an enum: no object is of another one as well. */
        static boolean isExact(TypeMirror type) {
            Element element = ((DeclaredType) type).asElement();
            return element.getModifiers().contains(Modifier.FINAL) || element.getKind() == ElementKind.ENUM;
        }

        @Override
        public Void visitEnhancedForLoop(EnhancedForLoopTree tree, Void nothing) {
            Element walked = trees.getElement(new TreePath(getCurrentPath(), tree.getExpression()));
            if (walked instanceof VariableElement && isSubtype(typeOf(tree.getExpression()), "java.util.Collection") && !nameOf(typeOf(tree.getExpression())).contains("concurrent")) {
                String name = tree.getExpression().toString();
                new TreePathScanner<Void, Void>() {
                    @Override
                    public Void visitBlock(BlockTree block, Void none) {
                        List<? extends StatementTree> rows = block.getStatements();
                        for (int i = 0; i < rows.size(); i++) {
                            String text = rows.get(i).toString();
                            boolean changes = rows.get(i) instanceof ExpressionStatementTree && (text.startsWith(name + ".remove(") || text.startsWith(name + ".add("));
                            boolean leaves = rows.stream().skip(i + 1L).anyMatch(row -> row instanceof BreakTree || row instanceof ReturnTree || row instanceof ThrowTree);
                            if (changes && !leaves) {
                                report("changed-while-walked", rows.get(i), "`" + name + "` is changed while the loop walks it: ConcurrentModificationException");
                            }
                        }
                        return super.visitBlock(block, none);
                    }
                }.scan(new TreePath(getCurrentPath(), tree.getStatement()), null);
            }
            return super.visitEnhancedForLoop(tree, nothing);
        }

        @Override
        public Void visitVariable(VariableTree tree, Void nothing) {
            TypeMirror type = typeOf(tree);
            if (type != null && (type.getKind() == TypeKind.DOUBLE || type.getKind() == TypeKind.FLOAT) && tree.getInitializer() != null) {
                findWholeDivision(bare(tree.getInitializer()));
            }
            boolean local = getCurrentPath().getParentPath().getLeaf() instanceof BlockTree;
            if (local && tree.getInitializer() != null && opens(tree.getInitializer())) {
                findLeak(tree);
            }
            return super.visitVariable(tree, nothing);
        }

        void findWholeDivision(ExpressionTree value) {
            if (value instanceof BinaryTree division && division.getKind() == Tree.Kind.DIVIDE && isWhole(division.getLeftOperand()) && isWhole(division.getRightOperand())
                    && !(division.getLeftOperand() instanceof LiteralTree)) {
                report("whole-division", division, "`" + division + "` is a division of integers: the fraction is lost before the assignment");
            }
        }

        boolean isWhole(ExpressionTree tree) {
            TypeMirror type = typeOf(tree);
            return type != null && (type.getKind() == TypeKind.INT || type.getKind() == TypeKind.LONG);
        }

        boolean opens(ExpressionTree value) {
            value = bare(value);
            if (value instanceof NewClassTree made) {
                if (OPENERS.contains(nameOf(typeOf(made)))) {
                    return true;
                }
                return isSubtype(typeOf(made), "java.io.Closeable") && made.getArguments().stream().anyMatch(this::opens);
            }
            return value instanceof MethodInvocationTree call && call.getMethodSelect() instanceof MemberSelectTree select
                    && OPENING_METHODS.contains(select.getIdentifier().toString()) && isSubtype(typeOf(call), "java.lang.AutoCloseable")
                    && methodOf(call) != null && elements.getPackageOf(methodOf(call)).toString().startsWith("java.");
        }

        /** A local that nothing closes, returns, keeps or wraps. */
        void findLeak(VariableTree tree) {
            String name = tree.getName().toString();
            TreePath path = getCurrentPath();
            while (path != null && !(path.getLeaf() instanceof MethodTree) && !(path.getLeaf() instanceof LambdaExpressionTree)) {
                path = path.getParentPath();
            }
            if (path == null) {
                return;
            }
            boolean[] kept = {false};
            new TreeScanner<Void, Void>() {
                boolean is(Tree value) {
                    return value instanceof IdentifierTree one && one.getName().contentEquals(name);
                }

                @Override
                public Void visitMethodInvocation(MethodInvocationTree call, Void none) {
                    boolean closes = call.getMethodSelect() instanceof MemberSelectTree select && is(select.getExpression()) && select.getIdentifier().contentEquals("close");
                    boolean hands = call.getArguments().stream().anyMatch(this::is) && call.toString().toLowerCase(Locale.ROOT).matches("(?s).*(close|register|add|put|set|submit|manage)\\w*\\(.*");
                    kept[0] |= closes || hands;
                    return super.visitMethodInvocation(call, none);
                }

                @Override
                public Void visitNewClass(NewClassTree made, Void none) {
                    kept[0] |= made.getArguments().stream().anyMatch(this::is) || made.getClassBody() != null;
                    return super.visitNewClass(made, none);
                }

                @Override
                public Void visitReturn(ReturnTree back, Void none) {
                    // what it made and hands on, such as the rows of a statement, needs it open
                    boolean needed = back.getExpression() instanceof MethodInvocationTree call && call.getMethodSelect() instanceof MemberSelectTree select
                            && is(select.getExpression()) && isSubtype(typeOf(call), "java.lang.AutoCloseable");
                    kept[0] |= needed || is(back.getExpression()) || back.getExpression() instanceof ConditionalExpressionTree;
                    return super.visitReturn(back, none);
                }

                @Override
                public Void visitAssignment(AssignmentTree set, Void none) {
                    kept[0] |= is(set.getExpression());
                    return super.visitAssignment(set, none);
                }

                @Override
                public Void visitLambdaExpression(LambdaExpressionTree inner, Void none) {
                    kept[0] = true;
                    return super.visitLambdaExpression(inner, none);
                }

                @Override
                public Void visitVariable(VariableTree other, Void none) {
                    kept[0] |= is(other.getInitializer());
                    return super.visitVariable(other, none);
                }

                @Override
                public Void visitTry(TryTree tried, Void none) {
                    kept[0] |= tried.getResources().stream().anyMatch(this::is);
                    return super.visitTry(tried, none);
                }
            }.scan(path.getLeaf(), null);
            if (!kept[0]) {
                report("never-closed", tree, "nothing closes `" + name + "`");
            }
        }

        @Override
        public Void visitReturn(ReturnTree tree, Void nothing) {
            if (tree.getExpression() != null && bare(tree.getExpression()).getKind() == Tree.Kind.NULL_LITERAL) {
                for (TreePath path = getCurrentPath(); path != null; path = path.getParentPath()) {
                    if (path.getLeaf() instanceof LambdaExpressionTree) {
                        break;
                    }
                    if (path.getLeaf() instanceof MethodTree method) {
                        TypeMirror type = method.getReturnType() == null ? null : trees.getTypeMirror(new TreePath(path, method.getReturnType()));
                        if (nameOf(type).equals("java.util.Optional")) {
                            report("null-optional", tree, "an Optional is promised and null is returned");
                        }
                        break;
                    }
                }
            }
            return super.visitReturn(tree, nothing);
        }
    }
}
