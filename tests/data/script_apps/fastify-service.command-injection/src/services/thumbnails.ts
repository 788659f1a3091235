import { exec } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(exec);

export class ThumbnailService {
  async createThumbnail(file: string, width: number): Promise<string> {
    const target = `/var/thumbs/${width}.png`;
    await run(`convert /var/uploads/${file} -resize ${width} ${target}`);
    return target;
  }
}
