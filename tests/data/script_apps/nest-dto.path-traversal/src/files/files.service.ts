import { Injectable } from '@nestjs/common';
import * as fs from 'fs';
import { join } from 'path';

@Injectable()
export class FilesService {
  private readonly folder = join(process.cwd(), 'files');

  save(name: string, data: string) {
    const place = join(this.folder, name);
    fs.writeFileSync(place, Buffer.from(data, 'base64'));
    return { place };
  }
}
