app.get('/', (req, res) => { const {name} = req.body;
const q = "SELECT * FROM u WHERE n='" + name + "'";
db.all(q, (e,r)=>res.json(r));
});
