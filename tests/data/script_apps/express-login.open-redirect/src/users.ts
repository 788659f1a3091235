export async function checkPassword(name: string, password: string) { return name && password ? { name } : null; }
