export async function fetchTitle(address: string): Promise<string | null> {
  const response = await fetch(address, { redirect: 'follow' });
  const html = await response.text();
  return /<title>([^<]*)/i.exec(html)?.[1] ?? null;
}
