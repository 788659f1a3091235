@Controller("items")
export class Items {
  @Get()
  list(@Query("id", ParseIntPipe) id: number, @Query("name") name: string) {
    return this.db.query("SELECT * FROM items WHERE id = ? AND name = ?", [id, name]);
  }
}
