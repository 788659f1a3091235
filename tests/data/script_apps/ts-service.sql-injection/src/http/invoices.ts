import { Router, type Request, type Response } from 'express';
import { InvoiceService } from '../services/invoice-service';
import { database } from '../database';

const invoices = new InvoiceService(database);
export const router = Router();

router.get('/invoices/:customer', async (req: Request, res: Response) => {
  const customer = req.params.customer.trim();
  res.json(await invoices.forCustomer(customer));
});
