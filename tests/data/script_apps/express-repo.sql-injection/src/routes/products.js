const { Router } = require('express');
const products = require('../controllers/products');

const router = Router();
router.get('/', products.list);
router.get('/:id', products.show);
module.exports = router;
