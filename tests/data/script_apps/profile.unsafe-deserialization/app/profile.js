const serialize = require('node-serialize');

function readProfile(cookie) {
  const text = Buffer.from(cookie, 'base64').toString('utf8');
  return serialize.unserialize(text);
}

exports.show = (req, res) => {
  if (!req.cookies.profile) return res.redirect('/login');
  const profile = readProfile(req.cookies.profile);
  res.render('profile', { profile });
};
