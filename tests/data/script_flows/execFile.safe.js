const { execFile } = require('child_process');
app.post('/', (req, res) => { execFile('convert', [req.body.file], () => res.end());
});
