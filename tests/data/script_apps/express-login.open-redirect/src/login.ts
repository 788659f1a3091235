import { Request, Response, Router } from 'express';
import { checkPassword } from './users';

export const login = Router();

async function finish({ body, query }: Request, res: Response) {
  const user = await checkPassword(body.name, body.password);
  if (!user) return res.status(401).end();
  const next = (query.next as string) ?? '/';
  return res.redirect(302, next);
}

login.post('/login', finish);
