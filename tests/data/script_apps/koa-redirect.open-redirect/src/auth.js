import Router from '@koa/router';

export const auth = new Router();

auth.get('/logout', async (ctx) => {
  ctx.session = null;
  const target = ctx.query.to;
  ctx.redirect(target || '/');
});
