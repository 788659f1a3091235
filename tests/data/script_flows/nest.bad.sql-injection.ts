@Controller("items")
export class Items {
  @Get()
  list(@Query("name") name: string) {
    return this.db.query(`SELECT * FROM items WHERE name = '${name}'`);
  }
}
