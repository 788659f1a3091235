import type { NextApiRequest, NextApiResponse } from 'next';
import { userById } from '../../../lib/users';

export default async function handler(req: NextApiRequest, res: NextApiResponse) {
  if (req.method !== 'GET') return res.status(405).end();
  const id = req.query.id as string;
  return res.json(await userById(id));
}
