import { Hono } from 'hono';
import { findNotes } from './notes';

const app = new Hono<{ Bindings: { DB: D1Database } }>();

app.get('/notes', async (c) => {
  const tag = c.req.query('tag') ?? '';
  return c.json(await findNotes(c.env.DB, tag));
});

export default app;
