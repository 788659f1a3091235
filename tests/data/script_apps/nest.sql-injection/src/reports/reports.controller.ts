import { Controller, Get, Query } from '@nestjs/common';
import { ReportsService } from './reports.service';

@Controller('reports')
export class ReportsController {
  constructor(private readonly reports: ReportsService) {}

  @Get()
  async list(@Query('region') region: string, @Query('year') year: string) {
    return this.reports.totals(region, Number(year));
  }
}
