export async function findNotes(db: D1Database, tag: string) {
  const filter = tag ? ` WHERE tag = '${tag}'` : '';
  const statement = db.prepare(`SELECT id, title FROM notes${filter} ORDER BY id`);
  return (await statement.all()).results;
}
