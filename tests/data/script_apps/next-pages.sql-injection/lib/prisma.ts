export const prisma: any = {};
