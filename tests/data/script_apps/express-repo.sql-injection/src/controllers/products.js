const repository = require('../repositories/products');

exports.list = async (req, res, next) => {
  try {
    const { sort = 'name', page = 1 } = req.query;
    const rows = await repository.listSorted(sort, Number(page));
    res.json(rows);
  } catch (error) {
    next(error);
  }
};

exports.show = async (req, res) => {
  res.json(await repository.find(req.params.id));
};
