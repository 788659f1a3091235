const express = require('express');
const { renderPage } = require('./html');

const app = express();

app.get('/search', (req, res) => {
  const term = (req.query.term || '').trim();
  const body = renderPage('Search', `<p>Nothing found for ${term}</p>`);
  res.status(200).send(body);
});

module.exports = app;
