import { NextResponse } from 'next/server';
import { fetchTitle } from '@/lib/preview';

export async function GET(request: Request) {
  const { searchParams } = new URL(request.url);
  const target = searchParams.get('url');
  if (!target) return NextResponse.json({ error: 'url is missing' }, { status: 400 });
  return NextResponse.json({ title: await fetchTitle(target) });
}
