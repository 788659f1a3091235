import type { Sequelize } from 'sequelize';

export class InvoiceService {
  constructor(private db: Sequelize) {}

  forCustomer(customer: string) {
    return this.db.query("SELECT * FROM invoices WHERE customer = '" + customer + "'");
  }
}
