export const database: any = {};
