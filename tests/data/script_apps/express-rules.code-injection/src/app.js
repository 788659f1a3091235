import express from 'express';
import { evaluate } from './rules/engine.js';

const app = express();
app.use(express.json());

app.post('/rules/preview', (req, res) => {
  const rule = req.body.rule;
  const sample = req.body.sample ?? {};
  res.json({ result: evaluate(rule, sample) });
});
