import axios from 'axios';

interface Hook { url: string; secret: string }

export async function ping(hook: Hook): Promise<number> {
  const { status } = await axios.post(hook.url, { event: 'ping' }, { headers: { 'x-secret': hook.secret } });
  return status;
}
