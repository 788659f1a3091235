const cache = new Map();

export function evaluate(expression, scope) {
  const compiled = compile(expression);
  return compiled(scope);
}

function compile(expression) {
  const body = `with (scope) { return (${expression}); }`;
  return new Function('scope', body);
}
