import { prisma } from './prisma';

export const userById = async (id: string) => {
  const rows = await prisma.$queryRawUnsafe(`SELECT * FROM "User" WHERE id = '${id}'`);
  return rows[0] ?? null;
};
