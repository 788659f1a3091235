import type { Request, Response, NextFunction } from 'express';
import * as service from './service';

export async function test(req: Request, res: Response, next: NextFunction) {
  try {
    const { url, secret } = req.body;
    const status = await service.ping({ url, secret });
    res.json({ status });
  } catch (e) {
    next(e);
  }
}
