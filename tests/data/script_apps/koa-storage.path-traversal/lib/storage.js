import { writeFile, mkdir } from 'node:fs/promises';
import path from 'node:path';

const ROOT = process.env.NOTES ?? '/srv/notes';

export async function saveNote(user, title, text) {
  const folder = path.join(ROOT, String(user));
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, `${title}.md`), text);
}
