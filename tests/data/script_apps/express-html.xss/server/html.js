exports.renderPage = (title, body) => {
  const head = `<head><title>${title}</title></head>`;
  return `<!doctype html><html>${head}<body>${body}</body></html>`;
};
