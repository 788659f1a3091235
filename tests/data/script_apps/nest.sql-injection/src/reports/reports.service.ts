import { Injectable } from '@nestjs/common';
import { DataSource } from 'typeorm';

@Injectable()
export class ReportsService {
  constructor(private readonly source: DataSource) {}

  async totals(region: string, year: number) {
    const where = "WHERE region = '" + region + "'";
    const sql = 'SELECT month, SUM(total) FROM invoices ' + where + ' AND year = ' + year + ' GROUP BY month';
    return this.source.query(sql);
  }
}
