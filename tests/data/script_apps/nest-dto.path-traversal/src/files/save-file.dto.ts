export class SaveFileDto { name: string; data: string; }
