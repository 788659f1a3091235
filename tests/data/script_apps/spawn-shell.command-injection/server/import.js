const { cloneRepository } = require('./git');

module.exports = (app) => {
  app.post('/import', async (req, res) => {
    const { address, branch = 'main' } = req.body;
    const folder = await cloneRepository(address, branch);
    res.json({ folder });
  });
};
