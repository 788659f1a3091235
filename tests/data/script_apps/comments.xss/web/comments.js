import { Router } from 'express';
import { shorten } from './text.js';

const router = Router();

router.post('/preview', (req, res) => {
  const comment = shorten(req.body.comment);
  res.set('content-type', 'text/html');
  res.end('<div class="comment">' + comment + '</div>');
});

export default router;
