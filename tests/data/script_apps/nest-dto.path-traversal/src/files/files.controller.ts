import { Body, Controller, Post } from '@nestjs/common';
import { FilesService } from './files.service';
import { SaveFileDto } from './save-file.dto';

@Controller('files')
export class FilesController {
  constructor(private readonly files: FilesService) {}

  @Post()
  save(@Body() dto: SaveFileDto) {
    return this.files.save(dto.name, dto.data);
  }
}
